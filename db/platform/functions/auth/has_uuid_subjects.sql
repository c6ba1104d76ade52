-- By name: a reference to the function would forbid a project to replace it.
create or replace function auth.has_uuid_subjects() returns boolean
language sql stable set search_path = ''
as $$
  select prorettype = 'uuid'::regtype from pg_catalog.pg_proc where oid = to_regprocedure('auth.uid()')
$$;
comment on function auth.has_uuid_subjects is 'Whether auth.uid() returns the uuid of the calling user, as at Supabase.';
