import { applicablePolicies } from "../../../engine/catalog/applicable-policies.ts";
import type { Catalog } from "../../../engine/catalog/catalog.ts";
import type { Policy } from "../../../engine/catalog/policies.ts";
import type { Table } from "../../../engine/catalog/tables.ts";

/**
 * SQL that says of a row whether policies let the role update or delete it, as the catalogue has the policies. One that names
 * what the role cannot, in a schema that it may not use, permits nothing here.
 */
export function permissionOf(catalog: Catalog, table: Table, role: string, command: "update" | "delete"): string {
  const policies = applicablePolicies(catalog, table, role, command);
  if (policies === null) return "true";
  const { permissive = [], restrictive = [] } = Object.groupBy(policies, (policy) =>
    policy.permissive ? "permissive" : "restrictive",
  );
  const isNameable = (policy: Policy) =>
    policy.schemaGrants.every((grants) => catalog.mayRole(role, "usage", { grants }));
  const conditions = (some: typeof policies) =>
    some.map((policy) => (isNameable(policy) ? `(${policy.using ?? "true"})` : "false"));
  const permitted = permissive.length === 0 ? "false" : `(${conditions(permissive).join(" or ")})`;
  return [permitted, ...conditions(restrictive)].join(" and ");
}
