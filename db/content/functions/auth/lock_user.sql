create or replace function auth.lock_user(user_id bigint) returns void as $$
  select from public.users where users.id = lock_user.user_id for key share;
$$ language sql set search_path = '';
comment on function auth.lock_user is 'Locks what a deletion of the user locks before the account.';
