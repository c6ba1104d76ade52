-- For functions. In a policy use "to admin" instead, which costs other roles nothing.
create or replace function auth.is_admin() returns boolean
language sql stable parallel safe
return pg_has_role(auth.role(), 'admin', 'usage');

grant execute on function auth.is_admin to anon, authenticated, service_role;
comment on function auth.is_admin is 'Whether the caller acts as admin, or as a role that inherits from admin.';
