-- The schema of the service was called "private", as schemas of projects are. The setting "content_service.names" has the names of what the
-- service has there; what else is there is the project's, and stays in a schema "private" of its own. Functions that have the name as a value:
--! functions content_service.tg_webhooks__check
do $$
declare
  v_names text := current_setting('content_service.names');
  v_mentioned text := '(?<![\w.$"])"?private"?\.(?="?(' || v_names || ')\M)';
  v_object record;
  v_was_set boolean := false;
begin
  -- Of "migrate -- --watch-only", whose schema has another name now.
  if to_regproc('content_service.tell_of_schema_change') is not null then
    alter schema content_service rename to content_service_watch;
  end if;
  alter schema private rename to content_service;

  -- Bodies that are texts name the schema; standard bodies, policies and views follow by themselves. Those of the project may name what is
  -- moved below.
  set local check_function_bodies = off;
  for v_object in
    select proc.oid, pg_get_functiondef(proc.oid) as definition
    from pg_proc as proc
    where proc.prosqlbody is null and proc.prokind in ('f', 'p') and proc.prosrc ~ v_mentioned
      and not exists (select from pg_depend where classid = 'pg_proc'::regclass and objid = proc.oid and deptype = 'e')
  loop
    execute regexp_replace(v_object.definition, v_mentioned, 'content_service.', 'g');
  end loop;
  set local check_function_bodies = on;
  update content_service.bounds set name = replace(name, ' private.', ' content_service.') where name like '% private.%';

  for v_object in
    with objects as (
      select 'pg_class'::regclass as catalog, oid, relname as name,
        case relkind when 'v' then 'view' when 'm' then 'materialized view' when 'S' then 'sequence' when 'f' then 'foreign table'
          when 'c' then 'type' else 'table' end as kind, format('content_service.%I', relname) as identity
      from pg_class where relnamespace = 'content_service'::regnamespace and relkind in ('r', 'p', 'v', 'm', 'S', 'f', 'c')
      union all
      select 'pg_proc'::regclass, oid, proname, 'routine', format('content_service.%I(%s)', proname, pg_get_function_identity_arguments(oid))
      from pg_proc where pronamespace = 'content_service'::regnamespace and prokind <> 'a'
      union all
      select 'pg_proc'::regclass, oid, proname, 'aggregate', format('content_service.%I(%s)', proname, pg_get_function_identity_arguments(oid))
      from pg_proc where pronamespace = 'content_service'::regnamespace and prokind = 'a'
      union all
      select 'pg_type'::regclass, oid, typname, 'type', format('content_service.%I', typname)
      from pg_type where typnamespace = 'content_service'::regnamespace and typtype in ('e', 'd', 'r')
    )
    select objects.kind, objects.identity from objects
    where objects.name !~ ('^(' || v_names || ')$') and not exists (
      select from pg_depend
      where pg_depend.classid = objects.catalog and pg_depend.objid = objects.oid and pg_depend.deptype in ('a', 'i', 'e')
        and pg_depend.refclassid <> 'pg_namespace'::regclass
    )
  loop
    if not v_was_set then
      create schema private;
      v_was_set := true;
    end if;
    execute format('alter %s %s set schema private', v_object.kind, v_object.identity);
  end loop;

  -- What the project has granted on the schema, it has granted for its own objects.
  for v_object in
    select case acl.grantee when 0 then 'public' else quote_ident(pg_get_userbyid(acl.grantee)) end as grantee, acl.privilege_type as privilege
    from pg_namespace, aclexplode(nspacl) as acl
    where nspname = 'content_service' and acl.grantee not in (nspowner, 'authenticator'::regrole)
  loop
    if v_was_set then
      execute format('grant %s on schema private to %s', v_object.privilege, v_object.grantee);
    end if;
    execute format('revoke %s on schema content_service from %s', v_object.privilege, v_object.grantee);
  end loop;
end $$;
