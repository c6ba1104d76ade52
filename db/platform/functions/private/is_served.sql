-- Every schema with USAGE for authenticated may be served, except schemas of this service that hold no tables of applications.
create or replace function private.is_served(class pg_class) returns boolean
language sql stable
return class.relkind in ('r', 'p')
  and class.relpersistence = 'p'
  and class.relnamespace not in ('auth'::regnamespace, 'api'::regnamespace, 'extensions'::regnamespace)
  and has_schema_privilege('authenticated', class.relnamespace, 'usage');
comment on function private.is_served is 'Whether this table may be served.';
