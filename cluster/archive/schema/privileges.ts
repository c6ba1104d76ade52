import pg from "pg";
import { defaultPrivileges, grantedObjects, ownerQuery, roleName, SCHEMA_PUBLIC } from "#catalog/definitions";
import { SCRATCH_MARK } from "#migrate";
import { LISTS_OF_NAMES } from "#postgres/client";

const FORM = { isArchive: true };

/** The beginning of the comment of a branch's database. Backups leave that comment out: the restored database is not a branch. */
export const BRANCH_MARK = "A branch of the database ";

/** Returns a statement about the database, which may have another name where it is restored. */
function databaseStatement(before: string, after: string): string {
  return `format(
    'do $do$ begin execute %L || quote_ident(current_database()) || %L; end $do$', ${before}, ${after}
  )`;
}

/** By default the schema public belongs to pg_database_owner, before Postgres 15 to the first superuser. */
const ownerOfPublic = `
  select 'schema public' as object, format('alter schema public owner to %s', ${roleName("nspowner", FORM)}) as statement
  from pg_namespace where oid = ${SCHEMA_PUBLIC} and nspowner not in (10, 'pg_database_owner'::regrole)`;

/** Event triggers are created after everything else. */
const ownersWhere = (isWanted: (catalog: string) => boolean) =>
  `select object, statement from (${ownerQuery(FORM, isWanted)}) as owned where owner <> session_user::regrole`;

/**
 * Selects the privileges that differ from those with which an object is created: by Postgres, by an extension, or by
 * default. A grant by another role than the owner is made in that role.
 */
const grantsWhere = (condition: string) => `
  with granted as (${grantedObjects(FORM)}),
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
    select target, owner, grantor, is_grant, is_grantable, ${roleName("grantee", FORM)} as role,
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

const settingChange = `format(
  ' set %s to %s', split_part(setting, '=', 1),
  case when split_part(setting, '=', 1) in (${[...LISTS_OF_NAMES].map(pg.escapeLiteral).join(", ")}) then coalesce(nullif(substr(setting, strpos(setting, '=') + 1), ''), '''''')
    else quote_literal(substr(setting, strpos(setting, '=') + 1)) end
)`;

const databaseSettings = `
  select 'settings of the database' as object, ${databaseStatement(
    `case setrole when 0 then 'alter database '
    else format('alter role %s in database ', ${roleName("setrole", FORM)}) end`,
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
export const settingStatements = [...defaultPrivileges(FORM), databaseSettings, databaseComment];

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
