import { useEffect, useMemo } from "preact/hooks";
import type { DatabaseDescription, DescribedTable } from "../../api/catalog.ts";
import { countRows, readRows } from "../../api/rows.ts";
import { formatFilter, type RowsState } from "./filters.ts";
import { completeOrder, formatOrder } from "./keyset.ts";
import { RowWindows } from "./row-windows.ts";
import { findRowKey, readableColumns } from "./table-access.ts";

export type TableRowsOptions = {
  readonly catalog: DatabaseDescription;
  readonly role: string;
  readonly table: DescribedTable;
  readonly state: RowsState;
  /** The caller; the rows of another caller are read again. */
  readonly caller: string;
};

/** Returns the rows of a table with the filters and the order of the page's address. */
export function useTableRows({ catalog, role, table, state, caller }: TableRowsOptions): RowWindows {
  const { filters, sort } = state;
  const windows = useMemo(
    () => openWindows(catalog, role, table, state),
    [catalog, role, table, caller, ...keysOf(filters, sort)],
  );
  useEffect(() => {
    const isHuge = filters.length === 0 && (table.estimated_rows ?? 0) > MAX_COUNTED;
    if (!isHuge) void windows.countRows();
    return () => windows.close();
  }, [windows]);
  return windows;
}

/** The number of rows above which the page shows the estimate until the user asks for the exact number. */
const MAX_COUNTED = 5_000_000;
/** The maximum number of values in a page; pages of tables with many columns have fewer rows. */
const MAX_VALUES_OF_PAGE = 5_000;

function keysOf(...values: readonly unknown[]): string[] {
  return values.map((value) => JSON.stringify(value));
}

function openWindows(catalog: DatabaseDescription, role: string, table: DescribedTable, { filters, sort }: RowsState) {
  const columns = readableColumns(catalog, role, table);
  const known = sort.filter(({ column }) => columns.some(({ name }) => name === column));
  const key = findRowKey(catalog, role, table);
  const order = completeOrder(known, key, (name) => columns.find((column) => column.name === name)?.nullable ?? false);
  const source = { schema: table.schema, table: table.name };
  const conditions = filters.map(formatFilter);
  const names = [...new Set([...columns.map(({ name }) => name), ...key])];
  return new RowWindows({
    order,
    isTotalOrder: key.length > 0,
    pageSize: Math.min(100, Math.max(40, Math.floor(MAX_VALUES_OF_PAGE / names.length))),
    rowCount: filters.length > 0 ? 0 : Math.max(0, table.estimated_rows ?? 0),
    read: (request, signal) =>
      readRows(
        {
          ...source,
          ...request,
          columns: names,
          filters: [...conditions, ...request.filters],
          order: formatOrder(request.order),
        },
        signal,
      ),
    count: (signal, filters = []) => countRows({ ...source, filters: [...conditions, ...filters] }, "exact", signal),
  });
}
