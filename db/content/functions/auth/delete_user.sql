create or replace function auth.delete_user(user_id bigint) returns void as $$
  delete from public.users where users.id = delete_user.user_id;
$$ language sql set search_path = '';
comment on function auth.delete_user is 'Deletes the user and the account.';
