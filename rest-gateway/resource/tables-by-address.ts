import type { Catalog } from "../../engine/catalog/catalog.ts";
import { exposedSchemas } from "../../engine/catalog/exposed-schemas.ts";
import type { Table } from "../../engine/catalog/tables.ts";
import { toAddressName } from "./naming.ts";

const UNQUOTED = /^[a-z_][a-z0-9_$]*$/;
const PRIVILEGES = ["select", "insert", "update", "delete"] as const;

/**
 * Of tables that would have one address, those that some role was granted come first, then those of the schema that is
 * exposed first, then names that SQL takes without quotes, then what was created first.
 */
export function tablesByAddress(catalog: Catalog): ReadonlyMap<string, Table> {
  const schemas = exposedSchemas(catalog);
  const tables = schemas.flatMap((schema) => [...schema.tables.values()]).filter(({ isPartition }) => !isPartition);
  const positions = new Map(schemas.map(({ name }, index) => [name, index]));
  const rankOf = (table: Table) => [
    isGranted(catalog, table) ? 0 : 1,
    positions.get(table.schema)!,
    UNQUOTED.test(table.name) ? 0 : 1,
    table.oid,
  ];
  const found = new Map<string, Table>();
  for (const [address, candidates] of Map.groupBy(tables, ({ name }) => toAddressName(name))) {
    const [first, ...others] = candidates;
    found.set(address, others.length === 0 ? first! : firstOf(candidates, rankOf));
  }
  return found;
}

function firstOf(tables: readonly Table[], rankOf: (table: Table) => readonly number[]): Table {
  const ranked = tables.map((table) => ({ table, rank: rankOf(table) }));
  ranked.sort((one, other) => {
    const at = one.rank.findIndex((part, index) => part !== other.rank[index]);
    return at < 0 ? 0 : one.rank[at]! - other.rank[at]!;
  });
  return ranked[0]!.table;
}

/** Whether any role that requests can have may do anything with the table. */
function isGranted(catalog: Catalog, table: Table): boolean {
  return [...catalog.roles.keys()].some(
    (role) =>
      !catalog.hasRole(role, table.owner) &&
      PRIVILEGES.some(
        (privilege) =>
          catalog.mayRole(role, privilege, table) ||
          [...table.columns.keys()].some((column) => catalog.mayRole(role, privilege, table, column)),
      ),
  );
}
