import {
  archivedName,
  type DefinitionForm,
  IS_PERMANENT,
  isExtensionMember,
  isOwn,
  isUsers,
  labelOf,
  ONCE,
  objectLabel,
  roleName,
  SCHEMA_PUBLIC,
} from "./definition.ts";

/** The catalogs of objects that have an owner, with the column of it and a condition. */
const OWNED: readonly (readonly [catalog: string, owner: string, where?: string])[] = [
  ["pg_namespace", "nspowner", "nspname !~ '^pg_'"],
  [
    "pg_class",
    "relowner",
    // Owned sequences and indexes follow their table.
    `relkind in ('r', 'p', 'f', 'v', 'm', 'S') and ${IS_PERMANENT} and not exists (
      select from pg_depend where classid = 'pg_class'::regclass and objid = class.oid and deptype in ('a', 'i')
        and refclassid = 'pg_class'::regclass and relkind = 'S'
    )`,
  ],
  [
    "pg_type",
    "typowner",
    "typtype in ('e', 'd', 'r') or typtype = 'c' and exists (select from pg_class where oid = typrelid and relkind = 'c')",
  ],
  ["pg_proc", "proowner"],
  ["pg_collation", "collowner"],
  ["pg_operator", "oprowner"],
  ["pg_statistic_ext", "stxowner"],
  ["pg_ts_dict", "dictowner"],
  ["pg_ts_config", "cfgowner"],
  ["pg_foreign_data_wrapper", "fdwowner"],
  ["pg_foreign_server", "srvowner"],
  ["pg_publication", "pubowner"],
  ["pg_event_trigger", "evtowner"],
  ["pg_largeobject_metadata", "lomowner"],
];

/** Returns a query of `object`, `owner` (an oid) and `statement`, for the catalogs that are wanted. */
export function ownerQuery(form: Pick<DefinitionForm, "isArchive">, isWanted: (catalog: string) => boolean): string {
  const owned = OWNED.filter(([catalog]) => isWanted(catalog)).map(([catalog, owner, where = "true"]) => {
    const [label, isArchive] = [objectLabel(catalog, "class.oid"), form.isArchive];
    return `
      select ${isArchive ? archivedName(catalog, "class.oid") : label} as object, ${owner} as owner,
        format('alter %s owner to %s', ${TARGETS[catalog] ?? label}, ${roleName(owner, form)}) as statement
      from ${catalog} as class
      where ${isOwn(catalog, "class.oid")} and (${where})`;
  });
  return owned.join(" union all ");
}

/** Names that serve for all kinds of these catalogs. */
const TARGETS: Readonly<Record<string, string>> = {
  pg_class: "'table ' || class.oid::regclass",
  pg_proc: "'routine ' || class.oid::regprocedure",
};

/** Objects with their privileges, and those that they have by default. Reading needs no word for tables, and says what routines are. */
export function grantedObjects({ isArchive }: Pick<DefinitionForm, "isArchive">): string {
  const table = `${isArchive ? "'table '" : "''"} || class.oid::regclass`;
  const routine = isArchive ? "'routine '" : "case prokind when 'p' then 'procedure ' else 'function ' end";
  const others = [
    ["pg_proc", "f", "pro", `${routine} || oid::regprocedure`],
    ["pg_namespace", "n", "nsp", "format('schema %I', nspname)", "nspname !~ '^pg_(temp|toast)'"],
    ["pg_type", "T", "typ", "'type ' || format_type(oid, null)"],
    ["pg_language", "l", "lan", "format('language %I', lanname)"],
    ["pg_foreign_data_wrapper", "F", "fdw", "format('foreign data wrapper %I', fdwname)"],
    ["pg_foreign_server", "S", "srv", "format('foreign server %I', srvname)"],
    ["pg_largeobject_metadata", "L", "lom", "format('large object %s', oid)"],
    ["pg_database", "d", "dat", "'database'", "datname = current_database()"],
  ].map(([catalog, kind, prefix, target, where = "true"]) => {
    const owner = prefix === "dat" ? "datdba" : `${prefix}owner`;
    return `select '${catalog}'::regclass, oid, 0, ${target}, null, ${owner}, ${prefix}acl, acldefault('${kind}', ${owner})
      from ${catalog} where ${where}`;
  });
  return `
    select 'pg_class'::regclass::oid as catalog, class.oid, 0 as part,
      case relkind when 'S' then 'sequence ' || class.oid::regclass else ${table} end as target,
      null::text as "column", relowner as owner, relacl as acl,
      acldefault(case relkind when 'S' then 's' else 'r' end::"char", relowner) as default_acl
    from pg_class as class where relkind in ('r', 'p', 'f', 'v', 'm', 'S') and ${IS_PERMANENT}
    union all
    select 'pg_class'::regclass, class.oid, attnum, ${table}, quote_ident(attname), relowner, attacl,
      acldefault('c', relowner)
    from pg_attribute join pg_class as class on class.oid = attrelid
    where not attisdropped and attacl is not null and ${IS_PERMANENT}
    union all ${others.join(" union all ")}`;
}

/** Selects the compared objects: others with privileges come with every database, or have no definition that is compared. */
const IS_COMPARED = `catalog in (
  'pg_class'::regclass, 'pg_proc'::regclass, 'pg_namespace'::regclass, 'pg_type'::regclass,
  'pg_foreign_data_wrapper'::regclass, 'pg_foreign_server'::regclass
)`;

/** If there are no grants, the defaults of Postgres apply: none, except `execute` on functions to PUBLIC, which is always written. */
const entries = `
  select ${labelOf("catalog", "granted.oid")} as object, target, "column", lower(privilege_type) as privilege,
    ${roleName("grantee", { isArchive: false })} as role, case when is_grantable then ' with grant option' else '' end as option
  from (${grantedObjects({ isArchive: false })}) as granted,
    aclexplode(case when catalog = 'pg_proc'::regclass then coalesce(acl, default_acl) else acl end)
  where grantee <> owner and not ${isExtensionMember("catalog", "granted.oid")}
    and ${IS_COMPARED}
    and (${isUsers("granted.oid")} or (catalog, granted.oid) = ('pg_namespace'::regclass, ${SCHEMA_PUBLIC}))
  ${ONCE}`;

/** One statement per set of roles with the same privileges: `grant insert (title), select on public.notes to anon, authenticated`. */
export const groupedGrants = `
  with privilege as (
    select object, target, role, option,
      privilege || coalesce(' (' || string_agg("column", ', ' order by "column" collate "C") || ')', '') as privilege
    from (${entries}) as entry
    group by object, target, role, option, privilege, "column" is null
  ),
  grantee as (
    select object, target, role, option, string_agg(privilege, ', ' order by privilege collate "C") as privileges
    from privilege group by object, target, role, option
  )
  select object, format(
    'grant %s on %s to %s%s', privileges, target, string_agg(role, ', ' order by role collate "C"), option
  ) as statement
  from grantee group by object, target, privileges, option`;

/** One `SchemaRow` per privilege, column and role: `grant insert (title) on public.notes to anon`. */
export const singleGrants = `
  select object, statement as name, statement as text, statement,
    format('revoke %s on %s from %s', privileges, target, role) as remove, null as replacement
  from (
    select *, format('grant %s on %s to %s%s', privileges, target, role, option) as statement
    from (select *, concat(privilege, ' (' || "column" || ')') as privileges from (${entries}) as entry) as entry
    ${ONCE}
  ) as granting`;

const objectKind = `case defaclobjtype
  when 'r' then 'tables' when 'S' then 'sequences' when 'f' then 'functions' when 'T' then 'types' when 'n' then 'schemas'
  else 'large objects' end`;
/** Default privileges of a schema add to the global ones; only the global ones can revoke the defaults of Postgres. */
const builtInAcl = `case when defaclnamespace = 0 then acldefault(
  case defaclobjtype when 'S' then 's' when 'L' then 'L' when 'T' then 'T' else lower(defaclobjtype::text) end::"char", defaclrole) end`;
const defaultEntries = (form: Pick<DefinitionForm, "isArchive">, acl: string, other: string, isGrant: boolean) => {
  const change = (grants: boolean, option = "null") => `concat(
    '${grants ? "grant" : "revoke"} ', lower(entry.privilege_type), ' on ', ${objectKind}, ' ${grants ? "to" : "from"} ',
    ${roleName("entry.grantee", form)}, ${option}
  )`;
  return `
    select ${change(isGrant, isGrant ? "case when entry.is_grantable then ' with grant option' end" : "null")} as change,
      ${change(!isGrant)} as reverse
    from aclexplode(${acl}) as entry
    where not exists (
      select from aclexplode(${other}) as same
      where (same.grantee, same.privilege_type, same.is_grantable) = (entry.grantee, entry.privilege_type, entry.is_grantable)
    )`;
};

/**
 * A query of `SchemaRow` for what default privileges revoke, and one for what they grant. Comparisons name only other roles
 * than the one that reads, which has another name in other databases.
 */
export function defaultPrivileges(form: Pick<DefinitionForm, "isArchive">): [revokes: string, grants: string] {
  const role = roleName("defaclrole", form);
  const ofRole = form.isArchive ? role : `case when defaclrole <> session_user::regrole then ${role} end`;
  const rowsOf = (entries: string) => `
    select 'default privileges' as object, beginning || change as name, beginning || change as text,
      beginning || change as statement, beginning || reverse as remove, null as replacement
    from (
      select concat(
        'alter default privileges', ' for role ' || ${ofRole}, ' in schema ' || quote_ident(nspname), ' '
      ) as beginning, change, reverse
      from pg_default_acl
      left join pg_namespace on pg_namespace.oid = defaclnamespace
      cross join lateral (${entries}) as changes
    ) as changed`;
  return [
    rowsOf(defaultEntries(form, builtInAcl, "defaclacl", false)),
    rowsOf(defaultEntries(form, "defaclacl", builtInAcl, true)),
  ];
}
