create or replace function auth.find_user(email text) returns bigint
language sql stable
begin atomic
  select users.id from public.users where lower(users.email) = lower(find_user.email);
end;

comment on function auth.find_user is 'The user with that e-mail address, who may have no account.';
