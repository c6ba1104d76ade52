create or replace function auth.has_administrator() returns boolean
language sql stable
return exists (select from auth.user_roles where role = 'admin');

comment on function auth.has_administrator is 'Whether there is an administrator.';
