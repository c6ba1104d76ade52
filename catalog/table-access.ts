import { applicablePolicies, bypassesRowSecurity, policyCondition } from "./access.ts";
import type { Catalog } from "./catalog.ts";
import type { CatalogTable, Policy } from "./tables.ts";

const accessCache = new WeakMap<CatalogTable, Map<string, TableAccess | null>>();

/** The columns and rows of a table that a role may read. */
export type TableAccess = {
  readonly columns: ReadonlySet<string>;
  /** True if the role has the privilege on the table, so that it may also read columns that were added or dropped meanwhile. */
  readonly includesAllColumns: boolean;
  /** True if the role may read the whole primary key. */
  readonly includesKey: boolean;
  readonly visibility: RowVisibility;
};

/** All rows, none, or those that satisfy `using`, the condition of the policies. */
export type RowVisibility = "all" | "none" | { readonly using: string; readonly policies: readonly Policy[] };

/** Returns null if the role may not read the table at all. */
export function readTableAccess(catalog: Catalog, table: CatalogTable, role: string): TableAccess | null {
  // Tables of the catalogue are immutable; a new catalogue has new ones.
  const byRole = accessCache.get(table) ?? new Map<string, TableAccess | null>();
  accessCache.set(table, byRole);
  let access = byRole.get(role);
  if (access === undefined) {
    access = computeTableAccess(catalog, table, role);
    byRole.set(role, access);
  }
  return access;
}

function computeTableAccess(catalog: Catalog, table: CatalogTable, role: string): TableAccess | null {
  const schema = catalog.schemas.get(table.schema);
  if (!schema?.exposed || !catalog.hasPrivilege(role, "usage", schema)) return null;
  const columns = new Set(
    [...table.columns.keys()].filter((name) => catalog.hasPrivilege(role, "select", table, name)),
  );
  if (columns.size === 0) return null;
  return {
    columns,
    includesAllColumns: catalog.hasPrivilege(role, "select", table),
    includesKey: table.primaryKey.every((name) => columns.has(name)),
    visibility: rowVisibility(catalog, table, role),
  };
}

function rowVisibility(catalog: Catalog, table: CatalogTable, role: string): RowVisibility {
  const policies = applicablePolicies(catalog, table, role, "select");
  if (policies === null) return "all";
  const permissive = policies.filter((policy) => policy.permissive).map(policyCondition);
  const restrictive = policies.filter((policy) => !policy.permissive).map(policyCondition);
  if (permissive.length === 0) return "none";
  const restricted = restrictive.filter((using) => using !== "true");
  const permitted = permissive.includes("true") ? [] : [permissive.map((using) => `(${using})`).join(" or ")];
  const conditions = [...permitted, ...restricted].map((using) => `(${using})`);
  return conditions.length === 0 ? "all" : { using: conditions.join(" and "), policies };
}

/**
 * True if the role may read each row that the table's statistics describe. Otherwise the planner's estimates, which use the
 * statistics for some conditions, reveal hidden rows.
 */
export function readsAllRows(catalog: Catalog, table: CatalogTable, role: string): boolean {
  return bypassesRowSecurity(catalog, role) || (table.showsAllRows && rowVisibility(catalog, table, role) === "all");
}
