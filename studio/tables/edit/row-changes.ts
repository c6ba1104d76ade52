import type { TableRow } from "../../api/rest-query.ts";
import type { EditedTable } from "./edited-table.ts";
import {
  bulkInsertRequest,
  deleteRequests,
  deleteUnchangedRequest,
  insertRequest,
  type RestRequest,
  type RowValues,
  readRequest,
  updateRequest,
  writableValues,
} from "./row-requests.ts";

/** The client's `request`, which throws ServiceError for a status of 400 or more. */
export type SendRequest = (
  path: string,
  options: Omit<RestRequest, "path"> & { readonly signal?: AbortSignal },
) => Promise<Response>;

/** Changes rows of one table with the requests of a sender. */
export type RowChanger = {
  readonly table: EditedTable;
  readonly key: readonly string[];
  readonly send: SendRequest;
};

type UpdateResult =
  | { readonly status: "changed"; readonly row: TableRow }
  /** Somebody else changed the same columns meanwhile. */
  | { readonly status: "conflict"; readonly row: TableRow; readonly columns: readonly string[] }
  /** The row was deleted, or is no longer visible. */
  | { readonly status: "gone" }
  /** The row is visible, but no policy allows to change it. */
  | { readonly status: "refused" };

export async function updateRow(changer: RowChanger, before: TableRow, values: RowValues): Promise<UpdateResult> {
  const request = updateRequest(changer.table, { key: changer.key, before, values });
  if (request.unchecked.length > 0) {
    const found = await compare(changer, before, request.unchecked);
    if (found.status !== "refused") return found;
  }
  const [row] = await sendForRows(changer.send, request);
  return row ? { status: "changed", row } : compare(changer, before, Object.keys(values));
}

/** Returns why a row was not changed; "refused" if these columns still have the shown values. */
async function compare(
  changer: RowChanger,
  before: TableRow,
  columns: readonly string[],
): Promise<Exclude<UpdateResult, { status: "changed" }>> {
  const [row] = await readRows(changer, [before]);
  if (!row) return { status: "gone" };
  const changed = columns.filter((name) => row[name] !== before[name]);
  return changed.length > 0 ? { status: "conflict", row, columns: changed } : { status: "refused" };
}

/** Reads rows again, in any order; deleted rows are missing. */
export async function readRows({ table, key, send }: RowChanger, rows: readonly TableRow[]): Promise<TableRow[]> {
  const parts = await Promise.all(readRequest(table, key, rows).map((request) => sendForRows(send, request)));
  return parts.flat();
}

/** Returns the row as it was stored; null if the caller may insert it but not read it. */
export async function insertRow({ table, send }: RowChanger, values: RowValues): Promise<TableRow | null> {
  try {
    const [row] = await sendForRows(send, insertRequest(table, [values]));
    return row ?? null;
  } catch (error) {
    if (!isForbidden(error)) throw error;
    // The caller may be allowed to insert the row, but not to read it.
    await sendRequest(send, bulkInsertRequest(table, [values]));
    return null;
  }
}

/** Deletes rows, and returns the deleted ones with their last values. */
export async function deleteRows({ table, key, send }: RowChanger, rows: readonly TableRow[]): Promise<TableRow[]> {
  const deleted: TableRow[] = [];
  for (const request of deleteRequests(table, key, rows)) deleted.push(...(await sendForRows(send, request)));
  return deleted;
}

/** Deletes a row if nobody has changed it since the last read. */
export async function deleteUnchangedRow(
  changer: RowChanger,
  row: TableRow,
): Promise<{ readonly status: "deleted" } | Exclude<UpdateResult, { status: "changed" }>> {
  const compared = await compare(changer, row, Object.keys(row));
  if (compared.status !== "refused") return compared;
  const deleted = await sendForRows(changer.send, deleteUnchangedRequest(changer.table, changer.key, row));
  return deleted.length > 0 ? { status: "deleted" } : compare(changer, row, Object.keys(row));
}

/** Inserts deleted rows again, all or none. */
export async function restoreRows({ table, send }: RowChanger, rows: readonly TableRow[]): Promise<TableRow[]> {
  return sendForRows(
    send,
    insertRequest(
      table,
      rows.map((row) => writableValues(table, row)),
    ),
  );
}

/** True if a missing privilege or a policy has refused the request. */
export function isForbidden(error: unknown): boolean {
  return error instanceof Error && "code" in error && error.code === "42501";
}

async function sendForRows(send: SendRequest, request: RestRequest): Promise<TableRow[]> {
  return (await (await sendRequest(send, request)).json()) as TableRow[];
}

function sendRequest(send: SendRequest, { path, ...options }: RestRequest): Promise<Response> {
  return send(path, options);
}
