create or replace function auth.find_user(email text) returns bigint
language sql stable
begin atomic
  select account.user_id from auth.users as account where lower(account.email) = lower(find_user.email);
end;

comment on function auth.find_user is 'The user with that e-mail address.';
