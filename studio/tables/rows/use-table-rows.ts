import { useEffect, useMemo } from "preact/hooks";
import type { DatabaseDescription, DescribedTable } from "../../api/catalog.ts";
import { countRows, readRows } from "../../api/rows.ts";
import { formatFilter, type RowsState } from "./filters.ts";
import { completeOrder, formatOrder } from "./keyset.ts";
import { RowWindows } from "./row-windows.ts";
import { findRowKey, readableColumns } from "./table-access.ts";

type TableRowsOptions = {
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
  const query = useMemo(
    () => describeQuery(catalog, role, table, state),
    [catalog, role, table, ...keysOf(filters, sort)],
  );
  // A catalogue that is read again leaves the rows as they are, unless they are read by another query.
  const windows = useMemo(() => openWindows(query, table.estimated_rows ?? 0), [caller, ...keysOf(query)]);
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

type RowsQuery = {
  readonly source: { readonly schema: string; readonly table: string };
  readonly columns: readonly string[];
  readonly conditions: readonly ReturnType<typeof formatFilter>[];
  readonly order: ReturnType<typeof completeOrder>;
  readonly isTotalOrder: boolean;
};

function describeQuery(
  catalog: DatabaseDescription,
  role: string,
  table: DescribedTable,
  { filters, sort }: RowsState,
): RowsQuery {
  const columns = readableColumns(catalog, role, table);
  const known = sort.filter(({ column }) => columns.some(({ name }) => name === column));
  const key = findRowKey(catalog, role, table);
  return {
    source: { schema: table.schema, table: table.name },
    columns: [...new Set([...columns.map(({ name }) => name), ...key])],
    conditions: filters.map(formatFilter),
    order: completeOrder(known, key, (name) => columns.find((column) => column.name === name)?.nullable ?? false),
    isTotalOrder: key.length > 0,
  };
}

function openWindows(
  { source, columns, conditions, order, isTotalOrder }: RowsQuery,
  estimatedRows: number,
): RowWindows {
  return new RowWindows({
    order,
    isTotalOrder,
    pageSize: Math.min(100, Math.max(40, Math.floor(MAX_VALUES_OF_PAGE / columns.length))),
    rowCount: conditions.length > 0 ? 0 : Math.max(0, estimatedRows),
    read: (request, signal) =>
      readRows(
        {
          ...source,
          ...request,
          columns,
          filters: [...conditions, ...request.filters],
          order: formatOrder(request.order),
        },
        signal,
      ),
    count: (signal, filters = []) => countRows({ ...source, filters: [...conditions, ...filters] }, "exact", signal),
  });
}
