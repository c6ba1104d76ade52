import { applicablePolicies } from "../../engine/catalog/applicable-policies.ts";
import type { Catalog } from "../../engine/catalog/catalog.ts";
import type { Table } from "../../engine/catalog/tables.ts";

/** What a role may see of a table. */
export type Sight = {
  readonly columns: ReadonlySet<string>;
  /** Whether it may read the whole primary key. */
  readonly readsKey: boolean;
  readonly rows: RowSight;
};

/** Every row, none, or those of which Postgres says so: `using` is the policies' condition, made of the columns of a row. */
export type RowSight = "all" | "none" | { readonly using: string };

const known = new WeakMap<Table, Map<string, Sight | null>>();

/** Null: it may not read the table at all. */
export function sightOf(catalog: Catalog, table: Table, role: string): Sight | null {
  // A table of the catalogue never changes, and the next catalogue has others.
  const byRole = known.get(table) ?? new Map<string, Sight | null>();
  known.set(table, byRole);
  let sight = byRole.get(role);
  if (sight === undefined) {
    sight = makeSight(catalog, table, role);
    byRole.set(role, sight);
  }
  return sight;
}

function makeSight(catalog: Catalog, table: Table, role: string): Sight | null {
  const schema = catalog.schemas.get(table.schema);
  if (!schema?.exposed || !catalog.mayRole(role, "usage", schema)) return null;
  const columns = new Set([...table.columns.keys()].filter((name) => catalog.mayRole(role, "select", table, name)));
  if (columns.size === 0) return null;
  return {
    columns,
    readsKey: table.primaryKey.every((name) => columns.has(name)),
    rows: rowSight(catalog, table, role),
  };
}

function rowSight(catalog: Catalog, table: Table, role: string): RowSight {
  const policies = applicablePolicies(catalog, table, role, "select");
  if (policies === null) return "all";
  const permissive = policies.filter((policy) => policy.permissive).map(({ using }) => using ?? "true");
  const restrictive = policies.filter((policy) => !policy.permissive).map(({ using }) => using ?? "true");
  if (permissive.length === 0) return "none";
  const hides = restrictive.filter((using) => using !== "true");
  const shows = permissive.includes("true") ? [] : [permissive.map((using) => `(${using})`).join(" or ")];
  const conditions = [...shows, ...hides].map((using) => `(${using})`);
  return conditions.length === 0 ? "all" : { using: conditions.join(" and ") };
}
