import { memoizePerObject } from "../../engine/cache/memoize.ts";
import { type Catalog, exposedSchemas } from "../../engine/catalog/catalog.ts";
import type { CatalogKeeper } from "../../engine/catalog/catalog-keeper.ts";
import type { CatalogTable } from "../../engine/catalog/tables.ts";
import type { Logger } from "../../engine/output/log.ts";
import { chooseFreeName, commentTags, toAddressName } from "./fields.ts";

type TableAddresses = {
  /** All exposed tables by address, in the order in which they got it. */
  readonly tables: ReadonlyMap<string, CatalogTable>;
  readonly addresses: ReadonlyMap<CatalogTable, string>;
  /** The table of an address within one schema. */
  findIn(schema: string, name: string): CatalogTable | undefined;
};

/** A table whose own address is held by an older table. */
type DisplacedTable = { readonly table: CatalogTable; readonly address: string; readonly holder: CatalogTable };

/**
 * Each table has one address: its name, unless an older table has that. So adding a table changes no address. Tables at
 * the root come first.
 */
export const tableAddresses = memoizePerObject((catalog: Catalog): TableAddresses => {
  const tables = new Map<string, CatalogTable>();
  for (const table of tablesInOrder(catalog)) {
    tables.set(freeAddress(candidatesFor(table, tables), tables), table);
  }
  const tablesOf = memoizePerObject((schema: { readonly name: string }) => addressesWithin(schema.name, tables));
  return {
    tables,
    addresses: new Map([...tables].map(([address, table]) => [table, address])),
    findIn(name, address) {
      const schema = catalog.schemas.get(name);
      const table = tables.get(address);
      // Paths from links mean the same with and without a schema header.
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

function tablesInOrder(catalog: Catalog): CatalogTable[] {
  const tables = exposedSchemas(catalog).flatMap((schema) => [...schema.tables.values()]);
  const rankOf = (table: CatalogTable) => (isAtRoot(table) ? 0 : 1);
  return tables
    .filter(({ isPartition }) => !isPartition)
    .sort((one, other) => rankOf(one) - rankOf(other) || one.oid - other.oid);
}

/** `parts`, or `shop-parts` if a table of another schema has that address. */
function candidatesFor(table: CatalogTable, taken: ReadonlyMap<string, CatalogTable>): [string, ...string[]] {
  const wanted = wantedAddress(table);
  const holder = taken.get(wanted);
  const isOfOtherSchema = holder !== undefined && holder.schema !== table.schema;
  return isOfOtherSchema ? [wanted, toAddressName(`${table.schema}-${table.name}`)] : [wanted];
}

/** The comment tag `@address human-beings` replaces the table's name. */
function wantedAddress({ name, comment }: CatalogTable): string {
  const [named] = commentTags(comment).get("address") ?? [];
  return toAddressName(named || name);
}

/** The addresses if there were no other schema. */
function addressesWithin(schema: string, tables: ReadonlyMap<string, CatalogTable>): ReadonlyMap<string, CatalogTable> {
  const found = new Map<string, CatalogTable>();
  for (const table of tables.values()) {
    if (table.schema === schema) found.set(freeAddress([wantedAddress(table)], found), table);
  }
  return found;
}

function freeAddress(candidates: readonly [string, ...string[]], taken: ReadonlyMap<string, CatalogTable>): string {
  const numbered = (name: string, number: number) => toAddressName(`${name}-${number}`);
  return chooseFreeName(candidates, (address) => taken.has(address), numbered);
}

/**
 * The comment tag `@root user`: served at `/<name>` too, by the rules of the user resource; the word is part of
 * USER_NOT_FOUND.
 */
export function isAtRoot({ comment }: Pick<CatalogTable, "comment">): boolean {
  return commentTags(comment).has("root");
}

/** Logs the tables whose address is not their name, and again on changes. Returns a function that stops it. */
export function warnOfDisplacedTables(
  catalog: Pick<CatalogKeeper, "current" | "onChange">,
  log: Pick<Logger, "warn">,
): () => void {
  let logged = "{}";
  const warn = () => {
    const displaced = displacedTables(catalog.current());
    const tables = Object.fromEntries(
      displaced.map(({ table, address }) => [`${table.schema}.${table.name}`, `/api/v1/${address}`]),
    );
    const text = JSON.stringify(tables);
    if (text !== logged && displaced.length > 0) {
      log.warn({ tables }, "tables are at other addresses than those of their names, which older tables have");
    }
    logged = text;
  };
  warn();
  return catalog.onChange(warn);
}
