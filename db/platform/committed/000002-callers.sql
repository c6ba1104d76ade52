--! Previous: sha1:ac05c657782b73fd538ddb879b09f6d3c420f25c
--! Hash: sha1:c10e9d52217194f0d3145fa3e1da02dc5a7ef495

-- The caller of a request. The service sends the role and the token's claims with every request, under the names that PostgREST
-- and Supabase use, so policies written for those work here.
--
-- These functions have SQL-standard bodies without "set search_path": their names are resolved at creation, and only such a
-- function is inlined into the policy that calls it. Reading one row by key under a policy (select auth.uid()), Postgres 18:
-- 30,000 per second; with a pinned search_path 26,500; in plpgsql 26,000; without any policy 35,500.

-- A setting that was used before on the connection is '' afterwards, not null: hence nullif.
create function auth.jwt() returns jsonb
language sql stable parallel safe
return nullif(current_setting('request.jwt.claims', true), '')::jsonb;
grant execute on function auth.jwt to anon, authenticated, service_role;
comment on function auth.jwt is 'The claims of the caller''s token; null without a token.';

-- Ids are bigint. A subject that is no id of this service (missing, a word, 19 digits or more) gives null, never an error. Tokens whose
-- subject is the uuid of an account have the id in the claim user_id.
create function auth.uid() returns bigint
language sql stable parallel safe
return coalesce(substring(auth.jwt() ->> 'sub' from '^[1-9][0-9]{0,17}$'), substring(auth.jwt() ->> 'user_id' from '^[1-9][0-9]{0,17}$'))::bigint;
grant execute on function auth.uid to anon, authenticated, service_role;
comment on function auth.uid is 'The id of the calling user; null for callers who are not signed in.';

-- The role that Postgres enforces, not the one a claim names. It stays the caller's inside security definer functions, where
-- current_user is the function's owner.
create function auth.role() returns text
language sql stable parallel safe
return coalesce(nullif(current_setting('role', true), 'none'), session_user);
grant execute on function auth.role to anon, authenticated, service_role;
comment on function auth.role is 'The database role in which the caller acts: anon, authenticated, admin or service_role.';

-- For functions. In a policy use "to admin" instead, which costs other roles nothing.
create function auth.is_admin() returns boolean
language sql stable parallel safe
return pg_has_role(auth.role(), 'admin', 'usage');
grant execute on function auth.is_admin to anon, authenticated, service_role;
comment on function auth.is_admin is 'Whether the caller acts as admin, or as a role that inherits from admin.';

-- By name: a reference to the function would forbid a project to replace it.
create function auth.has_uuid_subjects() returns boolean
language sql stable set search_path = ''
as $$
  select prorettype = 'uuid'::regtype from pg_catalog.pg_proc where oid = to_regprocedure('auth.uid()')
$$;
comment on function auth.has_uuid_subjects is 'Whether auth.uid() returns the uuid of the calling user, as at Supabase.';
