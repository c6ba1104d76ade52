-- Served is every schema that signed-in callers may use, less those of ours that are not for tables of theirs.
create or replace function private.is_served(class pg_class) returns boolean
language sql stable
return class.relkind in ('r', 'p')
  and class.relpersistence = 'p'
  and class.relnamespace not in ('auth'::regnamespace, 'api'::regnamespace, 'extensions'::regnamespace)
  and has_schema_privilege('authenticated', class.relnamespace, 'usage');
comment on function private.is_served is 'Whether this is a table that may be served.';
