import { request } from "./client.ts";
import {
  formatQuery,
  type RowBatch,
  type RowsQuery,
  rowsPath,
  type TableName,
  type TableRow,
  tablePath,
} from "./rest-query.ts";

export async function readRows(query: RowsQuery, signal?: AbortSignal): Promise<RowBatch> {
  const response = await request(rowsPath(query), {
    headers: { "Accept-Profile": query.schema },
    ...(signal && { signal }),
  });
  const text = await response.text();
  return { rows: JSON.parse(text) as TableRow[], size: text.length };
}

/** The number of rows that the caller sees. */
export async function countRows(
  { schema, table, filters }: TableName & Pick<RowsQuery, "filters">,
  method: "exact" | "estimated",
  signal?: AbortSignal,
): Promise<number> {
  const headers = { "Accept-Profile": schema, Prefer: `count=${method}` };
  const query = formatQuery([...filters, ["limit", "1"]]);
  const path = `${tablePath(table)}?${query}`;
  const response = await request(path, { method: "HEAD", headers, ...(signal && { signal }) });
  return totalOf(response.headers.get("content-range"));
}

/** Returns the total of `0-9/57`. */
function totalOf(contentRange: string | null): number {
  return Number(contentRange?.split("/")[1] ?? Number.NaN);
}
