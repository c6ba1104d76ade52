create or replace function auth.profile_of(user_id bigint) returns table (name text, email text)
language sql stable
begin atomic
  select users.name, users.email from public.users where users.id = profile_of.user_id;
end;

comment on function auth.profile_of is 'The name and e-mail address of a user, who may have no account.';
