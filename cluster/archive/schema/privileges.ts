import { SCRATCH_MARK } from "#migrate";
import { IS_PERMANENT, isOwn, objectName, roleName } from "./fragments.ts";

/** The beginning of the comment of a branch's database. Backups leave that comment out: the restored database is not a branch. */
export const BRANCH_MARK = "A branch of the database ";

/** Returns a statement about the database, which may have another name where it is restored. */
function databaseStatement(before: string, after: string): string {
  return `format(
    'do $do$ begin execute %L || quote_ident(current_database()) || %L; end $do$', ${before}, ${after}
  )`;
}

type OwnedCatalog = {
  readonly catalog: string;
  readonly owner: string;
  readonly target: string;
  readonly from?: string;
  readonly where?: string;
};

const named = (kind: string, schema: string, name: string) =>
  `format('${kind} %I.%I', (select nspname from pg_namespace where oid = ${schema}), ${name})`;

const OWNED: readonly OwnedCatalog[] = [
  { catalog: "pg_namespace", owner: "nspowner", target: "format('schema %I', nspname)", where: "nspname !~ '^pg_'" },
  {
    catalog: "pg_class",
    owner: "relowner",
    target: "format('table %s', class.oid::regclass)",
    from: "pg_class as class",
    // Owned sequences and indexes follow their table.
    where: `relkind in ('r', 'p', 'f', 'v', 'm', 'S') and ${IS_PERMANENT} and not exists (
      select from pg_depend where classid = 'pg_class'::regclass and objid = class.oid and deptype in ('a', 'i')
        and refclassid = 'pg_class'::regclass and relkind = 'S'
    )`,
  },
  {
    catalog: "pg_type",
    owner: "typowner",
    target: "format('type %s', format_type(item.oid, null))",
    where:
      "typtype in ('e', 'd', 'r') or typtype = 'c' and exists (select from pg_class where oid = typrelid and relkind = 'c')",
  },
  { catalog: "pg_proc", owner: "proowner", target: "'routine ' || item.oid::regprocedure" },
  { catalog: "pg_collation", owner: "collowner", target: named("collation", "collnamespace", "collname") },
  { catalog: "pg_operator", owner: "oprowner", target: "'operator ' || item.oid::regoperator" },
  { catalog: "pg_statistic_ext", owner: "stxowner", target: named("statistics", "stxnamespace", "stxname") },
  { catalog: "pg_ts_dict", owner: "dictowner", target: "'text search dictionary ' || item.oid::regdictionary" },
  { catalog: "pg_ts_config", owner: "cfgowner", target: "'text search configuration ' || item.oid::regconfig" },
  { catalog: "pg_foreign_data_wrapper", owner: "fdwowner", target: "format('foreign data wrapper %I', fdwname)" },
  { catalog: "pg_foreign_server", owner: "srvowner", target: "format('server %I', srvname)" },
  { catalog: "pg_publication", owner: "pubowner", target: "format('publication %I', pubname)" },
  { catalog: "pg_event_trigger", owner: "evtowner", target: "format('event trigger %I', evtname)" },
  { catalog: "pg_largeobject_metadata", owner: "lomowner", target: "format('large object %s', item.oid)" },
];

const ownersOf = ({ catalog, owner, target, from = `${catalog} as item`, where = "true" }: OwnedCatalog) => {
  const oid = catalog === "pg_class" ? "class.oid" : "item.oid";
  return `
    select ${objectName(catalog, oid)} as object, format('alter %s owner to %s', ${target}, ${roleName(owner)}) as statement
    from ${from}
    where ${isOwn(catalog, oid)} and ${owner} <> session_user::regrole and (${where})`;
};

/** By default the schema public belongs to pg_database_owner, before Postgres 15 to the first superuser. */
const ownerOfPublic = `
  select 'schema public' as object, format('alter schema public owner to %s', ${roleName("nspowner")}) as statement
  from pg_namespace where oid = 2200 and nspowner not in (10, 'pg_database_owner'::regrole)`;

/** Event triggers are created after everything else. */
const ownersWhere = (isWanted: (catalog: string) => boolean) =>
  OWNED.filter(({ catalog }) => isWanted(catalog))
    .map(ownersOf)
    .join(" union all ");

const granted = `
  select 'pg_class'::regclass::oid as catalog, class.oid, 0 as part,
    case relkind when 'S' then 'sequence ' else 'table ' end || class.oid::regclass as target,
    null::text as "column", relowner as owner, relacl as acl,
    acldefault(case relkind when 'S' then 's' else 'r' end::"char", relowner) as default_acl
  from pg_class as class where relkind in ('r', 'p', 'f', 'v', 'm', 'S') and ${IS_PERMANENT}
  union all
  select 'pg_class'::regclass, class.oid, attnum, 'table ' || class.oid::regclass, quote_ident(attname), relowner, attacl,
    acldefault('c', relowner)
  from pg_attribute join pg_class as class on class.oid = attrelid
  where not attisdropped and attacl is not null and ${IS_PERMANENT}
  union all
  select 'pg_proc'::regclass, oid, 0, 'routine ' || oid::regprocedure, null, proowner, proacl, acldefault('f', proowner)
  from pg_proc
  union all
  select 'pg_namespace'::regclass, oid, 0, format('schema %I', nspname), null, nspowner, nspacl, acldefault('n', nspowner)
  from pg_namespace where nspname !~ '^pg_(temp|toast)'
  union all
  select 'pg_type'::regclass, oid, 0, 'type ' || format_type(oid, null), null, typowner, typacl, acldefault('T', typowner)
  from pg_type
  union all
  select 'pg_language'::regclass, oid, 0, format('language %I', lanname), null, lanowner, lanacl, acldefault('l', lanowner)
  from pg_language
  union all
  select 'pg_foreign_data_wrapper'::regclass, oid, 0, format('foreign data wrapper %I', fdwname), null, fdwowner, fdwacl,
    acldefault('F', fdwowner)
  from pg_foreign_data_wrapper
  union all
  select 'pg_foreign_server'::regclass, oid, 0, format('foreign server %I', srvname), null, srvowner, srvacl,
    acldefault('S', srvowner)
  from pg_foreign_server
  union all
  select 'pg_largeobject_metadata'::regclass, oid, 0, format('large object %s', oid), null, lomowner, lomacl,
    acldefault('L', lomowner)
  from pg_largeobject_metadata
  union all
  select 'pg_database'::regclass, oid, 0, 'database', null, datdba, datacl, acldefault('d', datdba)
  from pg_database where datname = current_database()`;

/**
 * Selects the privileges that differ from those with which an object is created: by Postgres, by an extension, or by
 * default. A grant by another role than the owner is made in that role.
 */
const grantsWhere = (condition: string) => `
  with granted as (${granted}),
  entry as (
    select catalog, oid, part, target, "column", owner, true as is_present,
      grantor, grantee, privilege_type, is_grantable
    from granted, aclexplode(acl) where acl is not null
    union all
    select catalog, granted.oid, part, target, "column", owner, false, owner, grantee, privilege_type, is_grantable
    from granted
    left join pg_init_privs on classoid = catalog and objoid = granted.oid and objsubid = part,
    aclexplode(coalesce(initprivs, default_acl))
    where acl is not null
  ),
  difference as (
    select catalog, oid, part, target, "column", owner, grantee, privilege_type, is_grantable,
      bool_or(is_present) as is_grant, max(grantor) filter (where is_present) as grantor
    from entry
    group by catalog, oid, part, target, "column", owner, grantee, privilege_type, is_grantable
    having not (bool_or(is_present) and bool_or(not is_present))
  ),
  change as (
    select target, owner, grantor, is_grant, is_grantable, ${roleName("grantee")} as role,
      string_agg(lower(privilege_type) || coalesce(' (' || "column" || ')', ''), ', '
        order by privilege_type, "column") as privileges
    from difference
    group by target, owner, grantor, is_grant, is_grantable, grantee
  ),
  words as (
    select *, case when is_grant then 'grant ' else 'revoke ' end || privileges || ' on ' || target as beginning,
      case when is_grant then ' to ' || role || case when is_grantable then ' with grant option' else '' end
        else ' from ' || role end as ending
    from change
  )
  select 'privileges of ' || target as object,
    case
      when target = 'database' then ${databaseStatement("beginning || ' '", "ending")}
      when grantor <> owner and grantor <> session_user::regrole then
        format('set local role %I; %s%s; reset role', pg_get_userbyid(grantor), beginning, ending)
      else beginning || ending
    end as statement
  from words where ${condition}`;

const objectKind = `case defaclobjtype
  when 'r' then 'tables' when 'S' then 'sequences' when 'f' then 'functions' when 'T' then 'types' when 'n' then 'schemas'
  else 'large objects' end`;
/** Default privileges of a schema add to the global ones; only the global ones can revoke the defaults of Postgres. */
const builtInAcl = `case when defaclnamespace = 0 then acldefault(
  case defaclobjtype when 'S' then 's' when 'L' then 'L' when 'T' then 'T' else lower(defaclobjtype::text) end::"char", defaclrole) end`;
const defaultEntries = (acl: string, other: string, verb: string, preposition: string) => `
  select concat(
    '${verb} ', lower(entry.privilege_type), ' on ', ${objectKind}, ' ${preposition} ', ${roleName("entry.grantee")},
    case when ${verb === "grant"} and entry.is_grantable then ' with grant option' end
  ) as change
  from aclexplode(${acl}) as entry
  where not exists (
    select from aclexplode(${other}) as same
    where (same.grantee, same.privilege_type, same.is_grantable) = (entry.grantee, entry.privilege_type, entry.is_grantable)
  )`;

const defaultPrivileges = (entries: string) => `
  select 'default privileges' as object, format(
    'alter default privileges for role %s%s %s', ${roleName("defaclrole")}, ' in schema ' || quote_ident(nspname), change
  ) as statement
  from pg_default_acl
  left join pg_namespace on pg_namespace.oid = defaclnamespace
  cross join lateral (${entries}) as changes`;

/** These settings are lists, which are stored with quotes where necessary. */
const LIST_SETTINGS =
  "'search_path', 'temp_tablespaces', 'local_preload_libraries', 'session_preload_libraries', 'shared_preload_libraries'";
const settingChange = `format(
  ' set %s to %s', split_part(setting, '=', 1),
  case when split_part(setting, '=', 1) in (${LIST_SETTINGS}) then coalesce(nullif(substr(setting, strpos(setting, '=') + 1), ''), '''''')
    else quote_literal(substr(setting, strpos(setting, '=') + 1)) end
)`;

const databaseSettings = `
  select 'settings of the database' as object, ${databaseStatement(
    `case setrole when 0 then 'alter database '
    else format('alter role %s in database ', ${roleName("setrole")}) end`,
    settingChange,
  )} as statement
  from pg_db_role_setting, unnest(setconfig) as setting
  where setdatabase = (select oid from pg_database where datname = current_database())`;

/** The comments of the service that mark a branch or a scratch database are left out, because the copy is neither. */
const databaseComment = `
  select 'comment of the database' as object, ${databaseStatement("'comment on database '", "' is ' || quote_literal(description)")} as statement
  from (
    select shobj_description(oid, 'pg_database') as description from pg_database where datname = current_database()
  ) as described
  where description <> '${SCRATCH_MARK}' and not starts_with(description, '${BRANCH_MARK}')`;

/** The statements run in this order after those about relations, of which event triggers are last. */
export const ownerStatements = [ownerOfPublic, ownersWhere((catalog) => catalog !== "pg_event_trigger")];
export const eventTriggerOwners = [ownersWhere((catalog) => catalog === "pg_event_trigger")];
/** An owner revokes before others grant, and these grant the privileges that the owner has granted to them. */
export const grantStatements = [
  grantsWhere("not is_grant"),
  grantsWhere("is_grant and grantor = owner"),
  grantsWhere("is_grant and grantor <> owner"),
];
export const settingStatements = [
  defaultPrivileges(defaultEntries(builtInAcl, "defaclacl", "revoke", "from")),
  defaultPrivileges(defaultEntries("defaclacl", builtInAcl, "grant", "to")),
  databaseSettings,
  databaseComment,
];

/**
 * The roles of this database: those that own an object or have a privilege, their members, and the roles that they are
 * members of. Superusers that are only members are left out.
 */
const involved = `
  with recursive used as (
    select refobjid as oid from pg_shdepend
    where refclassid = 'pg_authid'::regclass and (
      dbid = (select oid from pg_database where datname = current_database())
      or classid = 'pg_database'::regclass and objid = (select oid from pg_database where datname = current_database())
    )
    union
    select setrole from pg_db_role_setting
    where setdatabase = (select oid from pg_database where datname = current_database())
  ),
  member as (
    select oid from used
    union
    select pg_auth_members.member from member
    join pg_auth_members on roleid = member.oid
    join pg_roles on pg_roles.oid = pg_auth_members.member and not rolsuper
  ),
  involved as (
    select oid from member
    union
    select roleid from involved join pg_auth_members on pg_auth_members.member = involved.oid
  )`;

export const ROLES = `
  ${involved}
  select rolname as role,
    concat_ws(
      ' ', case when rolcanlogin then 'login' else 'nologin' end, case when rolinherit then 'inherit' else 'noinherit' end,
      case when rolconnlimit >= 0 then 'connection limit ' || rolconnlimit end,
      'valid until ' || quote_literal(rolvaliduntil)
    ) as attributes,
    array_remove(array[
      case when rolcreatedb then 'createdb' end, case when rolcreaterole then 'createrole' end,
      case when rolbypassrls then 'bypassrls' end, case when rolreplication then 'replication' end,
      case when rolsuper then 'superuser' end
    ], null) as privileges,
    array(
      select format('alter role %I%s', rolname, ${settingChange})
      from pg_db_role_setting, unnest(setconfig) as setting
      where setrole = pg_roles.oid and setdatabase = 0 order by setting
    ) || array(
      select format('comment on role %I is %L', rolname, description)
      from (select shobj_description(pg_roles.oid, 'pg_authid') as description) as described where description is not null
    ) as statements
  from involved join pg_roles using (oid)
  where pg_roles.oid <> session_user::regrole and pg_roles.oid >= 16384
  order by rolname collate "C"`;

/** The memberships, without those of the role that makes the backup unless it uses them, which a superuser does not. */
export const memberships = (version: number) => `
  ${involved}
  select of.rolname as of, nullif(holder.rolname, session_user) as member, bool_or(admin_option) as "admin"
    ${version >= 160000 ? `, bool_or(inherit_option) as "inherit", bool_or(set_option) as "set"` : ""}
  from pg_auth_members
  join pg_roles as of on of.oid = roleid
  join pg_roles as holder on holder.oid = pg_auth_members.member
  where roleid in (select oid from involved) and pg_auth_members.member in (select oid from involved union select session_user::regrole)
    and not (holder.rolsuper and holder.rolname = session_user)
  group by of.rolname, holder.rolname
  order by of.rolname collate "C", holder.rolname collate "C"`;
