import { memoized } from "../memoized.ts";
import type { Grants, Privilege, RoutinePrivilege, SchemaPrivilege, TablePrivilege } from "./grants.ts";
import type { Roles } from "./roles.ts";
import type { Routine } from "./routines.ts";
import type { Schema } from "./schemas.ts";
import type { Table } from "./tables.ts";

/** What Postgres would say to `has_table_privilege` and its kin, answered from memory. Unknown roles may nothing. */
export type Access = {
  /** On the table as a whole, or on one column (granted itself or through the table). The schema's `usage` is a question of its own. */
  mayRole(role: string, privilege: TablePrivilege, table: Table, column?: string): boolean;
  mayRole(role: string, privilege: SchemaPrivilege, schema: Pick<Schema, "grants">): boolean;
  mayRole(role: string, privilege: RoutinePrivilege, routine: Routine): boolean;
  /** Whether policies and grants for `other` hold for `role`: the same one, or inherited. */
  hasRole(role: string, other: string): boolean;
};

/** Roles that come with Postgres and hold privileges on everything without any grant saying so. */
const PREDEFINED: ReadonlyMap<Privilege, string> = new Map([
  ["select", "pg_read_all_data"],
  ["insert", "pg_write_all_data"],
  ["update", "pg_write_all_data"],
  ["delete", "pg_write_all_data"],
  ["maintain", "pg_maintain"],
]);

export function makeAccess({ settable, memberships }: Roles): Access {
  const upwards = Map.groupBy(
    memberships.filter(({ inherits }) => inherits),
    ({ member }) => member,
  );
  const rolesOf = memoized((role: string): ReadonlySet<string> => {
    const found = new Set([role]);
    for (const member of found) for (const edge of upwards.get(member) ?? []) found.add(edge.role);
    return found;
  });

  const isGranted = (grants: Grants, privilege: Privilege, roles: ReadonlySet<string>): boolean => {
    for (const [grantee, privileges] of grants) {
      if (privileges.has(privilege) && (grantee === "public" || roles.has(grantee))) return true;
    }
    return false;
  };

  const isPredefined = (privilege: Privilege, roles: ReadonlySet<string>): boolean =>
    privilege === "usage"
      ? roles.has("pg_read_all_data") || roles.has("pg_write_all_data")
      : roles.has(PREDEFINED.get(privilege) ?? "");

  return {
    mayRole(
      name: string,
      privilege: Privilege,
      on: Pick<Schema, "grants"> | Table | Routine,
      column?: string,
    ): boolean {
      const role = settable.get(name);
      if (!role) return false;
      if (role.superuser) return true;
      const roles = rolesOf(name);
      if (isGranted(on.grants, privilege, roles) || isPredefined(privilege, roles)) return true;
      if (column === undefined || !("columns" in on)) return false;
      const grants = on.columns.get(column)?.grants;
      return grants !== undefined && isGranted(grants, privilege, roles);
    },
    hasRole: (role, other) => settable.has(role) && (settable.get(role)!.superuser || rolesOf(role).has(other)),
  };
}
