-- The role that Postgres enforces, not the one a claim names. It stays the caller's inside security definer functions, where
-- current_user is the function's owner.
create or replace function auth.role() returns text
language sql stable parallel safe
return coalesce(nullif(current_setting('role', true), 'none'), session_user);

grant execute on function auth.role to anon, authenticated, service_role;
comment on function auth.role is
  'The database role in which the caller acts: anon, authenticated, admin or service_role.';
