import type { Content } from "./content.ts";
import { makeGrantsParser } from "./grants.ts";
import type { QualifiedName } from "./qualified-name.ts";
import { toTypes } from "./types.ts";
import { toTableTargets } from "./view-columns.ts";

/** What was read, to be found by the numbers under which the system catalogues point to each other. */
export type ByOid = ReturnType<typeof indexByOid>;

export function indexByOid({ tables, columns, hiddenTables, viewTargets, types }: Content) {
  const grantsOf = makeGrantsParser();
  const tableRows = new Map(tables.map((row) => [row.oid, row]));
  const columnRows = Map.groupBy(columns, ({ table }) => table);

  const tableName = (table: number): QualifiedName => {
    const { schema, name } = tableRows.get(table) ?? hiddenTables.get(table)!;
    return { schema, name };
  };
  const columnName = (table: number, position: number): string | undefined =>
    columnRows.get(table)?.find((row) => row.position === position)?.name ??
    hiddenTables.get(table)?.columns.get(position)?.name;

  return {
    types: toTypes(types, grantsOf),
    grantsOf,
    tableRows,
    columnRows,
    hiddenTables,
    viewTargets,
    /** What views show, followed down to the tables. */
    tableTargets: toTableTargets(viewTargets),
    tableName,
    columnName,
    columnNames: (table: number, positions: readonly number[]): string[] =>
      positions.flatMap((position) => columnName(table, position) ?? []),
  };
}
