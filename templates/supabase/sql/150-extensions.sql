-- The extensions that Postgres has, and those that schemas and functions of this service stand in for. The import of a project writes these
-- views where its migrations ask for one of the latter, as "if exists (select from pg_extension where extname = 'pg_cron')" does.
create view extensions.pg_extension as
  with stand_in (extname, extversion, object) as (
    select extension.name, extension.version, schema.oid
      from (values ('pg_cron', '1.6.4', 'cron'), ('pg_net', '0.14.0', 'net'), ('supabase_vault', '0.3.1', 'vault'), ('pgmq', '1.5.1', 'pgmq'),
        ('pg_graphql', '1.5.11', 'graphql')) as extension (name, version, schema)
      join pg_catalog.pg_namespace as schema on schema.nspname = extension.schema
    union all
    -- A project may have functions of these names: the types of the arguments tell.
    select extension.name, extension.version, min(found.pronamespace::bigint)::oid
      from (values ('vector', '0.8.0', 'vector_elements', '{vector}'::name[]), ('http', '1.6', 'http', '{http_request}'),
        ('pgjwt', '0.2.0', 'algorithm_sign', '{text,text,text}'), ('pg_jsonschema', '0.3.3', 'jsonb_matches_schema', '{json,jsonb}'))
        as extension (name, version, function, types)
      join pg_catalog.pg_proc as found on found.proname = extension.function and extension.types = array(
        select type.typname from unnest(found.proargtypes) with ordinality as argument (type, place)
          join pg_catalog.pg_type as type on type.oid = argument.type
          where type.typnamespace in ('pg_catalog'::regnamespace, found.pronamespace) order by argument.place
      )
      group by extension.name, extension.version
  )
  select oid, extname, extowner, extnamespace, extrelocatable, extversion from pg_catalog.pg_extension
  union all
  select schema.oid, stand_in.extname::name, schema.nspowner, schema.oid, false, stand_in.extversion
    from stand_in join pg_catalog.pg_namespace as schema on schema.oid = stand_in.object
    where not exists (select from pg_catalog.pg_extension as listed where listed.extname = stand_in.extname);
comment on view extensions.pg_extension is 'Extensions, and what stands in for those of Supabase.';

create view extensions.pg_available_extensions as
  select name, default_version, installed_version, comment from pg_catalog.pg_available_extensions
  union all
  select name, null, (select extversion from extensions.pg_extension where extname = name), null
    from unnest('{pg_cron,pg_net,supabase_vault,pgmq,pg_graphql,vector,http,pgjwt,pg_jsonschema}'::name[]) as name
    where name not in (select name from pg_catalog.pg_available_extensions)
      and (name in ('vector', 'http', 'pgjwt', 'pg_jsonschema') or name in (select extname from extensions.pg_extension));
comment on view extensions.pg_available_extensions is 'Extensions that can be created, and what stands in for those of Supabase.';
grant select on extensions.pg_extension, extensions.pg_available_extensions to public;
