import {
  type DatabaseDescription,
  type DescribedForeignKey,
  type DescribedName,
  type DescribedTable,
  findTable,
  isSameName,
} from "../api/catalog.ts";
import type { TableRow } from "../api/rest-query.ts";
import { pathTo } from "../router.ts";
import { formatRowsState, type RowFilter } from "./rows/filters.ts";

/** Rows of another table that a row refers to, or that refer to it. */
export type Reference = {
  /** The name of the foreign key. */
  readonly name: string;
  readonly table: DescribedTable;
  readonly filters: readonly RowFilter[];
};

/** Returns the foreign key that a column links to: if there are several, the one with the fewest columns. */
export function foreignKeyOf({ foreign_keys: keys }: DescribedTable, column: string): DescribedForeignKey | undefined {
  return keys
    .filter(({ columns }) => columns.includes(column))
    .sort((one, other) => one.columns.length - other.columns.length)[0];
}

/** Returns the row that a foreign key refers to; null if a column is null or the table is not described. */
export function referencedRow(catalog: DatabaseDescription, key: DescribedForeignKey, row: TableRow): Reference | null {
  const table = findTable(catalog, key.target);
  const values = key.columns.map((column) => row[column]);
  return table ? referenceBy(key.name, table, key.target_columns, values) : null;
}

/** Returns the rows that refer to this one, by foreign key. */
export function referencingRows(catalog: DatabaseDescription, target: DescribedName, row: TableRow): Reference[] {
  return catalog.tables.flatMap((table) =>
    table.foreign_keys
      .filter((key) => isSameName(key.target, target) && table.parents.length === 0)
      .map((key) =>
        referenceBy(
          key.name,
          table,
          key.columns,
          key.target_columns.map((column) => row[column]),
        ),
      )
      .filter((reference) => reference !== null),
  );
}

function referenceBy(
  name: string,
  table: DescribedTable,
  columns: readonly string[],
  values: readonly (string | null | undefined)[],
): Reference | null {
  if (values.some((value) => value == null)) return null;
  const filters = columns.map((column, index) => ({
    column,
    path: "",
    operator: "eq" as const,
    value: values[index]!,
  }));
  return { name, table, filters };
}

/** Returns the address of the page that shows the rows. */
export function addressOf({ table, filters }: Pick<Reference, "table" | "filters">): string {
  return `${pathTo("tables", table.schema, table.name)}?${formatRowsState({ filters, sort: [] })}`;
}
