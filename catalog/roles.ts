import type { CatalogQuery } from "./catalog-query.ts";

/** A role that the login role can `set role` to. */
export type CatalogRole = {
  readonly name: string;
  readonly superuser: boolean;
  readonly canLogin: boolean;
  readonly bypassesRowSecurity: boolean;
  /**
   * The settings from `alter role … set`; those for this database take precedence: `statement_timeout`,
   * `default_transaction_isolation`, `pgrst.*`, …
   */
  readonly settings: ReadonlyMap<string, string>;
  /** The names of the settings that any user may change. */
  readonly userSettable: ReadonlySet<string>;
};

/** The membership of a role in another one. */
type RoleMembership = { readonly member: string; readonly role: string; readonly inherits: boolean };

export type CatalogRoles = {
  readonly settable: ReadonlyMap<string, CatalogRole>;
  readonly memberships: readonly RoleMembership[];
};

type RoleRow = Omit<CatalogRole, "settings" | "userSettable" | "bypassesRowSecurity"> & { bypasses: boolean };
type MembershipRow = RoleMembership & { settable: boolean };
type RoleSettingRow = { role: string | null; setting: string };

type RoleRows = {
  readonly roles: readonly RoleRow[];
  readonly memberships: readonly MembershipRow[];
  readonly settings: readonly (RoleSettingRow & { isFree: boolean })[];
};

/**
 * The query returns only roles that the login role is a member of, so that the cost does not depend on the number of roles
 * in the cluster.
 */
const REACHABLE = `
  with recursive upwards (oid) as (
    select oid from pg_roles where rolname = $1
    union
    select m.roleid from upwards join pg_auth_members m on m.member = upwards.oid
  ), reachable as (
    select oid from upwards
    union
    select oid from pg_roles where (select rolsuper from pg_roles where rolname = $1)
  )`;

const ROLES = `${REACHABLE}
  select rolname as name, rolsuper as superuser, rolcanlogin as "canLogin", rolbypassrls as bypasses
  from pg_roles join reachable using (oid)
  order by rolname`;

// The database owner is an implicit member of pg_database_owner.
const membershipsSql = (serverVersion: number) => `${REACHABLE}
  select pg_get_userbyid(m.member) as member, pg_get_userbyid(m.roleid) as role,
    bool_or(${serverVersion >= 160000 ? "m.inherit_option" : "r.rolinherit"}) as inherits,
    bool_or(${serverVersion >= 160000 ? "m.set_option" : "true"}) as settable
  from pg_auth_members m join reachable on reachable.oid = m.member join pg_roles r on r.oid = m.member
  group by m.member, m.roleid
  union all
  select pg_get_userbyid(datdba), 'pg_database_owner', true, false from pg_database where datname = current_database()
  order by member, role`;

// Settings for one database take precedence over those for all, and are therefore read last. Custom settings, which Postgres
// does not know, can be set by any user.
const ROLE_SETTINGS = `${REACHABLE}
  select pg_get_userbyid(nullif(s.setrole, 0)) as role, c.setting,
    coalesce(p.context = 'user', strpos(split_part(c.setting, '=', 1), '.') > 0) as "isFree"
  from pg_db_role_setting s cross join lateral unnest(s.setconfig) c (setting)
    left join pg_database d on d.oid = s.setdatabase
    left join pg_settings p on lower(p.name) = lower(split_part(c.setting, '=', 1))
  where (s.setdatabase = 0 or d.datname = current_database())
    and (s.setrole = 0 or s.setrole in (select oid from reachable))
  order by s.setdatabase <> 0, s.setrole, c.setting`;

export async function readRoles(read: CatalogQuery, loginRole: string, serverVersion: number): Promise<RoleRows> {
  return {
    roles: await read("roles", ROLES, [loginRole]),
    memberships: await read("memberships", membershipsSql(serverVersion), [loginRole]),
    settings: await read("settings", ROLE_SETTINGS, [loginRole]),
  };
}

export function toRoles(rows: RoleRows, loginRole: string): CatalogRoles {
  const settings = Map.groupBy(rows.settings, ({ role }) => role);
  const login = rows.roles.find(({ name }) => name === loginRole);
  const settableNames = login?.superuser ? null : settableRoleNames(loginRole, rows.memberships);
  const settable = new Map<string, CatalogRole>();
  for (const { name, superuser, canLogin, bypasses } of rows.roles) {
    if (settableNames && !settableNames.has(name)) continue;
    const ownSettings = settings.get(name) ?? [];
    const userSettable = new Set(parseSettings(ownSettings.filter(({ isFree }) => isFree)).keys());
    const role = {
      name,
      superuser,
      canLogin,
      bypassesRowSecurity: bypasses,
      settings: parseSettings(ownSettings),
      userSettable,
    };
    settable.set(name, role);
  }
  return { settable, memberships: rows.memberships };
}

function settableRoleNames(from: string, memberships: readonly MembershipRow[]): ReadonlySet<string> {
  const grantedRoles = Map.groupBy(memberships, ({ member }) => member);
  const reached = new Set([from]);
  for (const member of reached) {
    for (const { role, settable } of grantedRoles.get(member) ?? []) if (settable) reached.add(role);
  }
  return reached;
}

/**
 * Parses settings in the format of `setconfig`, such as `statement_timeout=5s`; of two settings with the same name the later
 * takes precedence.
 */
export function parseSettings(rows: readonly Pick<RoleSettingRow, "setting">[]): ReadonlyMap<string, string> {
  return new Map(
    rows.map(({ setting }) => {
      const equals = setting.indexOf("=");
      return [setting.slice(0, equals), setting.slice(equals + 1)];
    }),
  );
}
