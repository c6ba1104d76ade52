import type { Read } from "./reader.ts";

/** A role that the login can become. */
export type Role = {
  readonly name: string;
  readonly superuser: boolean;
  readonly canLogin: boolean;
  readonly bypassesRowSecurity: boolean;
  /** As `alter role … set` wrote them, those for this database winning: `statement_timeout`, `default_transaction_isolation`, `pgrst.*`, … */
  readonly settings: ReadonlyMap<string, string>;
  /** The names of those that anybody may set for himself. */
  readonly free: ReadonlySet<string>;
};

/** An edge from a role to one it was granted. */
export type Membership = { readonly member: string; readonly role: string; readonly inherits: boolean };

export type Roles = {
  readonly settable: ReadonlyMap<string, Role>;
  readonly memberships: readonly Membership[];
};

type RoleRow = Omit<Role, "settings" | "free" | "bypassesRowSecurity"> & { bypasses: boolean };
type MembershipRow = Membership & { settable: boolean };
export type SettingRow = { role: string | null; setting: string };

export type RoleRows = {
  readonly roles: readonly RoleRow[];
  readonly memberships: readonly MembershipRow[];
  readonly settings: readonly (SettingRow & { isFree: boolean })[];
};

/** From the login upwards only: the cost follows what it can reach, not how many roles the cluster has. */
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

// The owner of the database is a member of pg_database_owner without any row saying so.
const memberships = (serverVersion: number) => `${REACHABLE}
  select pg_get_userbyid(m.member) as member, pg_get_userbyid(m.roleid) as role,
    bool_or(${serverVersion >= 160000 ? "m.inherit_option" : "r.rolinherit"}) as inherits,
    bool_or(${serverVersion >= 160000 ? "m.set_option" : "true"}) as settable
  from pg_auth_members m join reachable on reachable.oid = m.member join pg_roles r on r.oid = m.member
  group by m.member, m.roleid
  union all
  select pg_get_userbyid(datdba), 'pg_database_owner', true, false from pg_database where datname = current_database()
  order by member, role`;

// Settings for one database outrank those for all, and are therefore read last. Those of somebody's own, whose names
// Postgres does not know, are free.
const SETTINGS = `${REACHABLE}
  select pg_get_userbyid(nullif(s.setrole, 0)) as role, c.setting,
    coalesce(p.context = 'user', strpos(split_part(c.setting, '=', 1), '.') > 0) as "isFree"
  from pg_db_role_setting s cross join lateral unnest(s.setconfig) c (setting)
    left join pg_database d on d.oid = s.setdatabase
    left join pg_settings p on lower(p.name) = lower(split_part(c.setting, '=', 1))
  where (s.setdatabase = 0 or d.datname = current_database())
    and (s.setrole = 0 or s.setrole in (select oid from reachable))
  order by s.setdatabase <> 0, s.setrole, c.setting`;

export async function readRoles(read: Read, loginRole: string, serverVersion: number): Promise<RoleRows> {
  return {
    roles: await read("roles", ROLES, [loginRole]),
    memberships: await read("memberships", memberships(serverVersion), [loginRole]),
    settings: await read("settings", SETTINGS, [loginRole]),
  };
}

export function toRoles(rows: RoleRows, loginRole: string): Roles {
  const settings = Map.groupBy(rows.settings, ({ role }) => role);
  const login = rows.roles.find(({ name }) => name === loginRole);
  const settableNames = login?.superuser ? null : reach(loginRole, rows.memberships);
  const settable = new Map<string, Role>();
  for (const { name, superuser, canLogin, bypasses } of rows.roles) {
    if (settableNames && !settableNames.has(name)) continue;
    const own = settings.get(name) ?? [];
    const free = new Set(toSettings(own.filter(({ isFree }) => isFree)).keys());
    const role = { name, superuser, canLogin, bypassesRowSecurity: bypasses, settings: toSettings(own), free };
    settable.set(name, role);
  }
  return { settable, memberships: rows.memberships };
}

function reach(from: string, memberships: readonly MembershipRow[]): ReadonlySet<string> {
  const upwards = Map.groupBy(memberships, ({ member }) => member);
  const reached = new Set([from]);
  for (const member of reached) {
    for (const { role, settable } of upwards.get(member) ?? []) if (settable) reached.add(role);
  }
  return reached;
}

/** `statement_timeout=5s`, as Postgres keeps what was set for somebody; of two for one name the later counts. */
export function toSettings(rows: readonly Pick<SettingRow, "setting">[]): ReadonlyMap<string, string> {
  return new Map(
    rows.map(({ setting }) => {
      const equals = setting.indexOf("=");
      return [setting.slice(0, equals), setting.slice(equals + 1)];
    }),
  );
}
