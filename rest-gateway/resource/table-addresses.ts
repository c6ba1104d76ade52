import type { Catalog } from "../../engine/catalog/catalog.ts";
import { exposedSchemas } from "../../engine/catalog/exposed-schemas.ts";
import type { Table } from "../../engine/catalog/tables.ts";
import { oncePer } from "../../engine/once-per.ts";
import { commentTags } from "./comment-tags.ts";
import { firstFree } from "./first-free.ts";
import { isAtRoot } from "./is-at-root.ts";
import { toAddressName } from "./naming.ts";

export type TableAddresses = {
  /** Every exposed table, by its address; in the order in which the tables got theirs. */
  readonly tables: ReadonlyMap<string, Table>;
  readonly addresses: ReadonlyMap<Table, string>;
  /** The table that a request for this schema means. */
  findIn(schema: string, name: string): Table | undefined;
};

/** A table that is not at the address that its name gives, which an older table has. */
export type DisplacedTable = { readonly table: Table; readonly address: string; readonly holder: Table };

/**
 * Each table has one address: that of its name, unless a table that was created before it has that. So no address changes
 * when a table is added. Tables that are served at the root come before all others.
 */
export const tableAddresses = oncePer((catalog: Catalog): TableAddresses => {
  const tables = new Map<string, Table>();
  for (const table of tablesInOrder(catalog)) {
    tables.set(freeAddress(candidatesFor(table, tables), tables), table);
  }
  const tablesOf = oncePer((schema: { readonly name: string }) => addressesWithin(schema.name, tables));
  return {
    tables,
    addresses: new Map([...tables].map(([address, table]) => [table, address])),
    findIn(name, address) {
      const schema = catalog.schemas.get(name);
      const table = tables.get(address);
      // What links say means the same with a schema and without.
      return table?.schema === name ? table : schema && tablesOf(schema).get(address);
    },
  };
});

export function displacedTables(catalog: Catalog): readonly DisplacedTable[] {
  const { tables } = tableAddresses(catalog);
  return [...tables].flatMap(([address, table]) => {
    const holder = tables.get(wantedAddress(table))!;
    return holder === table ? [] : [{ table, address, holder }];
  });
}

function tablesInOrder(catalog: Catalog): Table[] {
  const tables = exposedSchemas(catalog).flatMap((schema) => [...schema.tables.values()]);
  const rankOf = (table: Table) => (isAtRoot(table) ? 0 : 1);
  return tables
    .filter(({ isPartition }) => !isPartition)
    .sort((one, other) => rankOf(one) - rankOf(other) || one.oid - other.oid);
}

/** `parts`, or else `shop-parts` where the table in its place is of another schema. */
function candidatesFor(table: Table, taken: ReadonlyMap<string, Table>): [string, ...string[]] {
  const wanted = wantedAddress(table);
  const holder = taken.get(wanted);
  const isOfOtherSchema = holder !== undefined && holder.schema !== table.schema;
  return isOfOtherSchema ? [wanted, toAddressName(`${table.schema}-${table.name}`)] : [wanted];
}

/** `@address human-beings` in the table's comment names another one than that of its name. */
function wantedAddress({ name, comment }: Table): string {
  const [named] = commentTags(comment).get("address") ?? [];
  return toAddressName(named || name);
}

/** As if there were no other schema. */
function addressesWithin(schema: string, tables: ReadonlyMap<string, Table>): ReadonlyMap<string, Table> {
  const found = new Map<string, Table>();
  for (const table of tables.values()) {
    if (table.schema === schema) found.set(freeAddress([wantedAddress(table)], found), table);
  }
  return found;
}

function freeAddress(candidates: readonly [string, ...string[]], taken: ReadonlyMap<string, Table>): string {
  const numbered = (name: string, number: number) => toAddressName(`${name}-${number}`);
  return firstFree(candidates, (address) => taken.has(address), numbered);
}
