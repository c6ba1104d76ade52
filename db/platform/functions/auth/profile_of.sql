create or replace function auth.profile_of(user_id bigint) returns table (name text, email text)
language sql stable
begin atomic
  select coalesce(account.raw_user_meta_data ->> 'name', account.email, ''), account.email
  from auth.users as account where account.user_id = profile_of.user_id;
end;

comment on function auth.profile_of is 'The name and e-mail address of a user.';
