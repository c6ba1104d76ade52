import { memoize } from "#runtime";
import type { Grants, Privilege, RoutinePrivilege, SchemaPrivilege, TablePrivilege } from "./privileges.ts";
import type { CatalogRole, CatalogRoles } from "./roles.ts";
import type { Routine } from "./routines.ts";
import type { CatalogTable, Policy } from "./tables.ts";

/** The checks of `has_table_privilege` and related functions, evaluated in memory. Unknown roles have no privileges. */
export type PrivilegeChecks = {
  /**
   * True if the role has a privilege on a table, or on one column (granted on the column or on the table). Does not include
   * `usage` on the schema.
   */
  hasPrivilege(role: string, privilege: TablePrivilege, table: CatalogTable, column?: string): boolean;
  hasPrivilege(role: string, privilege: SchemaPrivilege, schema: { readonly grants: Grants }): boolean;
  hasPrivilege(role: string, privilege: RoutinePrivilege, routine: Routine): boolean;
  /** True if policies and grants for `other` apply to `role`: it is the same role, or `role` inherits it. */
  hasRole(role: string, other: string): boolean;
};

/** Predefined roles of Postgres that have privileges on all objects without a grant. */
const PREDEFINED_ROLES: ReadonlyMap<Privilege, string> = new Map([
  ["select", "pg_read_all_data"],
  ["insert", "pg_write_all_data"],
  ["update", "pg_write_all_data"],
  ["delete", "pg_write_all_data"],
  ["maintain", "pg_maintain"],
]);

export function makePrivilegeChecks({ settable, memberships }: CatalogRoles): PrivilegeChecks {
  const grantedRoles = Map.groupBy(
    memberships.filter(({ inherits }) => inherits),
    ({ member }) => member,
  );
  const rolesOf = memoize((role: string): ReadonlySet<string> => {
    const found = new Set([role]);
    for (const member of found) for (const edge of grantedRoles.get(member) ?? []) found.add(edge.role);
    return found;
  });

  const isGranted = (grants: Grants, privilege: Privilege, roles: ReadonlySet<string>): boolean => {
    for (const [grantee, privileges] of grants) {
      if (privileges.has(privilege) && (grantee === "public" || roles.has(grantee))) return true;
    }
    return false;
  };

  const isGrantedByPredefinedRole = (privilege: Privilege, roles: ReadonlySet<string>): boolean =>
    privilege === "usage"
      ? roles.has("pg_read_all_data") || roles.has("pg_write_all_data")
      : roles.has(PREDEFINED_ROLES.get(privilege) ?? "");

  return {
    hasPrivilege(
      name: string,
      privilege: Privilege,
      object: { readonly grants: Grants } | CatalogTable | Routine,
      column?: string,
    ): boolean {
      const role = settable.get(name);
      if (!role) return false;
      if (role.superuser) return true;
      const roles = rolesOf(name);
      if (isGranted(object.grants, privilege, roles) || isGrantedByPredefinedRole(privilege, roles)) return true;
      if (column === undefined || !("columns" in object)) return false;
      const grants = object.columns.get(column)?.grants;
      return grants !== undefined && isGranted(grants, privilege, roles);
    },
    hasRole: (role, other) => settable.has(role) && (settable.get(role)!.superuser || rolesOf(role).has(other)),
  };
}

/** True if the role has the privilege on the table or on any of its columns, like Postgres's function of this name. */
export function hasAnyColumnPrivilege(
  catalog: Pick<PrivilegeChecks, "hasPrivilege">,
  role: string,
  privilege: TablePrivilege,
  table: CatalogTable,
): boolean {
  return (
    catalog.hasPrivilege(role, privilege, table) ||
    table.columns.keys().some((column) => catalog.hasPrivilege(role, privilege, table, column))
  );
}

/** The part of a catalogue that determines which policies apply to a role. */
type CatalogAccess = Pick<PrivilegeChecks, "hasRole"> & { readonly roles: ReadonlyMap<string, CatalogRole> };

type PolicyCommand = Exclude<Policy["command"], "all">;

/** Returns the policies that apply to the role for the command; null if the role bypasses row-level security. */
export function applicablePolicies(
  catalog: CatalogAccess,
  table: CatalogTable,
  role: string,
  command: PolicyCommand,
): readonly Policy[] | null {
  if (!isSubjectToPolicies(catalog, table, role)) return null;
  return policiesFor(table, command).filter(({ roles }) =>
    roles.some((name) => name === "public" || catalog.hasRole(role, name)),
  );
}

type CatalogOwners = CatalogAccess & {
  readonly database: { readonly owner: string };
  readonly schemas: ReadonlyMap<string, { readonly tables: ReadonlyMap<string, CatalogTable> }>;
};

/** True if the role is exempt from policies: it bypasses row-level security, or inherits an owner. */
export function bypassesPolicies(catalog: CatalogOwners, name: string): boolean {
  if (bypassesRowSecurity(catalog, name) || catalog.hasRole(name, catalog.database.owner)) return true;
  const tables = [...catalog.schemas.values()].flatMap((schema) => [...schema.tables.values()]);
  return tables.some((table) => table.rowSecurity !== "off" && !isSubjectToPolicies(catalog, table, name));
}

/**
 * Returns the condition of a policy for existing rows. Without a condition a permissive policy permits none, and a
 * restrictive one forbids none.
 */
export function policyCondition({ using, permissive }: Policy): string {
  return using ?? (permissive ? "false" : "true");
}

function policiesFor({ policies }: CatalogTable, command: PolicyCommand): readonly Policy[] {
  return policies.filter((policy) => policy.command === "all" || policy.command === command);
}

/** True if no policy of any table applies to the role. */
export function bypassesRowSecurity({ roles }: Pick<CatalogAccess, "roles">, name: string): boolean {
  const { superuser = false, bypassesRowSecurity: bypasses = false } = roles.get(name) ?? {};
  return superuser || bypasses;
}

function isSubjectToPolicies(catalog: CatalogAccess, { rowSecurity, owner }: CatalogTable, name: string): boolean {
  if (rowSecurity === "off" || bypassesRowSecurity(catalog, name)) return false;
  return rowSecurity === "forced" || !catalog.hasRole(name, owner);
}

/**
 * Returns SQL that is true if the policies in the catalogue permit the role to update or delete a row. It is false if a
 * policy refers to objects in a schema that the role may not use.
 */
export function policyConditionSql(
  catalog: CatalogAccess & PrivilegeChecks,
  table: CatalogTable,
  role: string,
  command: "update" | "delete",
): string {
  const policies = applicablePolicies(catalog, table, role, command);
  if (policies === null) return "true";
  const { permissive = [], restrictive = [] } = Object.groupBy(policies, (policy) =>
    policy.permissive ? "permissive" : "restrictive",
  );
  const isNameable = (policy: Policy) =>
    policy.schemaGrants.every((grants) => catalog.hasPrivilege(role, "usage", { grants }));
  const policyConditions = (some: typeof policies) =>
    some.map((policy) => (isNameable(policy) ? `(${policyCondition(policy)})` : "false"));
  const permitted = permissive.length === 0 ? "false" : `(${policyConditions(permissive).join(" or ")})`;
  return [permitted, ...policyConditions(restrictive)].join(" and ");
}
