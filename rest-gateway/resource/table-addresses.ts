import { memoizePerObject } from "../../engine/cache/memoize.ts";
import { type Catalog, exposedSchemas } from "../../engine/catalog/catalog.ts";
import type { CatalogKeeper } from "../../engine/catalog/catalog-keeper.ts";
import type { CatalogTable } from "../../engine/catalog/tables.ts";
import type { Logger } from "../../engine/output/log.ts";
import { chooseFreeName, commentTags, toAddressName } from "./naming.ts";

type TableAddresses = {
  /** Every exposed table, by its address; in the order in which the tables got theirs. */
  readonly tables: ReadonlyMap<string, CatalogTable>;
  readonly addresses: ReadonlyMap<CatalogTable, string>;
  /** The table that a request for this schema means. */
  findIn(schema: string, name: string): CatalogTable | undefined;
};

/** A table that is not at the address that its name gives, which an older table has. */
type DisplacedTable = { readonly table: CatalogTable; readonly address: string; readonly holder: CatalogTable };

/**
 * Each table has one address: that of its name, unless a table that was created before it has that. So no address changes
 * when a table is added. Tables that are served at the root come before all others.
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

function tablesInOrder(catalog: Catalog): CatalogTable[] {
  const tables = exposedSchemas(catalog).flatMap((schema) => [...schema.tables.values()]);
  const rankOf = (table: CatalogTable) => (isAtRoot(table) ? 0 : 1);
  return tables
    .filter(({ isPartition }) => !isPartition)
    .sort((one, other) => rankOf(one) - rankOf(other) || one.oid - other.oid);
}

/** `parts`, or else `shop-parts` where the table in its place is of another schema. */
function candidatesFor(table: CatalogTable, taken: ReadonlyMap<string, CatalogTable>): [string, ...string[]] {
  const wanted = wantedAddress(table);
  const holder = taken.get(wanted);
  const isOfOtherSchema = holder !== undefined && holder.schema !== table.schema;
  return isOfOtherSchema ? [wanted, toAddressName(`${table.schema}-${table.name}`)] : [wanted];
}

/** `@address human-beings` in the table's comment names another one than that of its name. */
function wantedAddress({ name, comment }: CatalogTable): string {
  const [named] = commentTags(comment).get("address") ?? [];
  return toAddressName(named || name);
}

/** As if there were no other schema. */
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

/** `@root user`: served at `/<name>` by the rules of the user resource; the word names a row in its code, USER_NOT_FOUND. */
export function isAtRoot({ comment }: Pick<CatalogTable, "comment">): boolean {
  return commentTags(comment).has("root");
}

/** Logs which tables are at other addresses than those of their names, and again when others are. What it returns ends that. */
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
