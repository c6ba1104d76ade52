import { label, ours } from "./objects.ts";

/** What was never granted has the grants that Postgres gives by itself: none, but for functions execute to everybody. */
const granted = `
  select
    ${label("pg_class", "class.oid")} as object,
    case relkind when 'S' then 'sequence ' else '' end || class.oid::regclass as target,
    null as column, relowner as owner, relacl as acl
  from pg_class as class ${ours("pg_class", "class.oid", "class.relnamespace")}
  where relkind <> 'c'
  union all
  select ${label("pg_class", "class.oid")}, class.oid::regclass::text, quote_ident(attname), relowner, attacl
  from pg_attribute
  join pg_class as class on class.oid = attrelid ${ours("pg_class", "class.oid", "class.relnamespace")}
  where attnum > 0 and not attisdropped
  union all
  select
    ${label("pg_proc", "proc.oid")}, 'function ' || proc.oid::regprocedure, null, proowner,
    coalesce(proacl, acldefault('f', proowner))
  from pg_proc as proc ${ours("pg_proc", "proc.oid", "proc.pronamespace")}
  union all
  select
    ${label("pg_namespace", "schema.oid")}, 'schema ' || quote_ident(schema.nspname), null, schema.nspowner,
    schema.nspacl
  from pg_namespace as schema ${ours("pg_namespace", "schema.oid", "schema.oid")}
  union all
  select ${label("pg_type", "type.oid")}, 'type ' || format_type(type.oid, null), null, typowner, typacl
  from pg_type as type ${ours("pg_type", "type.oid", "type.typnamespace")}`;

const roleName = (oid: string) => `case ${oid} when 0 then 'public' else quote_ident(pg_get_userbyid(${oid})) end`;
const withOption = "case when is_grantable then ' with grant option' else '' end";

/** One line for those who were granted the same: `grant insert (title), select on public.notes to anon, authenticated`. */
export const grants = `
  with privilege as (
    select object, target, ${roleName("grantee")} as grantee, ${withOption} as option,
      lower(privilege_type)
        || coalesce(' (' || string_agg("column", ', ' order by "column" collate "C") || ')', '') as privilege
    from (${granted}) as granted, aclexplode(acl) as entry
    where grantee <> owner
    group by object, target, grantee, is_grantable, privilege_type, "column" is null
  ),
  grantee as (
    select object, target, grantee, option, string_agg(privilege, ', ' order by privilege collate "C") as privileges
    from privilege group by object, target, grantee, option
  )
  select object, format(
    'grant %s on %s to %s%s',
    privileges, target, string_agg(grantee, ', ' order by grantee collate "C"), option
  ) as statement
  from grantee group by object, target, privileges, option`;

/** One line for each: `grant insert (title) on public.notes to anon`. */
export const singleGrants = `
  select object, format(
    'grant %s%s on %s to %s%s', lower(privilege_type), ' (' || "column" || ')', target, ${roleName("grantee")}, ${withOption}
  ) as statement
  from (${granted}) as granted, aclexplode(acl)
  where grantee <> owner`;

const subject = `case defaclobjtype
    when 'r' then 'tables' when 'S' then 'sequences' when 'f' then 'functions' when 'T' then 'types' else 'schemas'
  end`;

/**
 * What is said for one schema adds to what is said for all. Only the latter can take away what Postgres gives by
 * itself: execute on functions, usage on types.
 */
const usual = 'case when defaclnamespace = 0 then acldefault(lower(defaclobjtype::text)::"char", defaclrole) end';

function onlyIn(acl: string, other: string): string {
  return `
    select lower(entry.privilege_type) || ' on ' || ${subject} as privilege, ${roleName("entry.grantee")} as role
    from aclexplode(${acl}) as entry
    where entry.grantee <> defaclrole and not exists (
      select from aclexplode(${other}) as same
      where same.grantee = entry.grantee and same.privilege_type = entry.privilege_type
    )`;
}

export const defaultPrivileges = `
  select
    'default privileges' as object,
    format('alter default privileges%s %s', ' in schema ' || quote_ident(nspname), change) as statement
  from pg_default_acl
  left join pg_namespace on pg_namespace.oid = defaclnamespace
  cross join lateral (
    select format('grant %s to %s', privilege, role) as change from (${onlyIn("defaclacl", usual)}) as given
    union all
    select format('revoke %s from %s', privilege, role) from (${onlyIn(usual, "defaclacl")}) as taken
  ) as changes`;
