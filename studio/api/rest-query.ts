import { quoteField } from "./field-names.ts";

/** A name and a value of the query string. */
export type QueryParameter = readonly [name: string, value: string];

export function formatQuery(parameters: readonly QueryParameter[]): string {
  return parameters.map(([name, value]) => `${encodeURIComponent(name)}=${encodeURIComponent(value)}`).join("&");
}

export type TableName = {
  readonly schema: string;
  readonly table: string;
};

/** A row as the table interface returns it: each value is the text of Postgres, so that no digit is lost. */
export type TableRow = Readonly<Record<string, string | null>>;

export type RowsQuery = TableName & {
  readonly columns: readonly string[];
  readonly filters: readonly QueryParameter[];
  /** The value of the parameter `order`; empty for none. */
  readonly order: string;
  readonly limit: number;
  readonly offset: number;
};

export type RowBatch = {
  readonly rows: readonly TableRow[];
  /** The length of the response. */
  readonly size: number;
};

export function rowsPath({ table, columns, filters, order, limit, offset }: RowsQuery): string {
  const parameters: QueryParameter[] = [
    ["select", columns.map((name) => `${quoteField(name)}::text`).join(",")],
    ...filters,
  ];
  if (order) parameters.push(["order", order]);
  parameters.push(["limit", String(limit)]);
  if (offset > 0) parameters.push(["offset", String(offset)]);
  return `${tablePath(table)}?${formatQuery(parameters)}`;
}

export function tablePath(table: string): string {
  return `/rest/v1/${encodeURIComponent(table)}`;
}
