import { ADMIN_ROLE } from "#accounts/identity";
import { applicablePolicies, type Catalog, type CatalogTable, hasAnyColumnPrivilege } from "#catalog";

/** Matches conditions of policies that mention administrators. */
const ADMIN_CONDITION = /\bis_admin\(|'admin'/;
type RolesAndPrivileges = Pick<Catalog, "roles" | "hasRole" | "hasPrivilege">;

const CHANGES = ["insert", "update", "delete"] as const;

/**
 * True if the rows that administrators see and change depend on policies that were written for others: for reading, or for a change that
 * they have the privilege for, no policy names administrators or allows everything to everybody.
 */
export function lacksAdministratorPolicy(catalog: RolesAndPrivileges, table: CatalogTable): boolean {
  if (table.kind !== "table" && table.kind !== "partitioned table") return false;
  if (!catalog.roles.has(ADMIN_ROLE)) return false;
  const changes = CHANGES.filter((change) =>
    change === "delete"
      ? catalog.hasPrivilege(ADMIN_ROLE, change, table)
      : hasAnyColumnPrivilege(catalog, ADMIN_ROLE, change, table),
  );
  return (["select", ...changes] as const).some((command) => {
    const policies = applicablePolicies(catalog, table, ADMIN_ROLE, command);
    return policies !== null && !policies.some(isForAdministrators);
  });
}

function isForAdministrators({ permissive, roles, using, check }: CatalogTable["policies"][number]): boolean {
  if (!permissive) return false;
  if (roles.includes(ADMIN_ROLE)) return true;
  const conditions = [using, check].filter((condition) => condition !== null);
  // A policy without a condition permits nothing.
  return conditions.length > 0 && conditions.every((each) => each === "true" || ADMIN_CONDITION.test(each));
}
