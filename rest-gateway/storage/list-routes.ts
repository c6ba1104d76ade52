import { jsonResponse } from "#http";
import { isJsonObject, type JsonObject } from "#runtime/json";
import type { ObjectRow } from "./object-rows.ts";
import { storageError } from "./storage-error.ts";
import { optionalText, readJsonBody, type StorageRequest, type StorageRoutes, wholeNumber } from "./storage-request.ts";

export const listRoutes: StorageRoutes = {
  "POST /object/list/{bucket}": listFolder,
  "POST /object/list-v2/{bucket}": listPage,
};

const SORT_COLUMNS = ["name", "updated_at", "created_at", "last_accessed_at"];

/** Lists a page by offset; names are those within the folder. */
async function listFolder(request: StorageRequest) {
  const body = await readJsonBody(request);
  const prefix = optionalText(body, "prefix") ?? "";
  const { column, isDescending } = readSorting(body, SORT_COLUMNS);
  if (body.exactMatch === true) {
    const objects = await request.rows.findAll(request.parameters.bucket!, [prefix]);
    return jsonResponse(200, objects.map(shownEntry));
  }
  const values = [
    prefix === "" || prefix.endsWith("/") ? prefix : `${prefix}/`,
    request.parameters.bucket!,
    String(wholeNumber(body, "limit", { least: 1, most: 1500, usual: 100 })),
    String(wholeNumber(body, "offset", { least: 0, most: 1_000_000_000, usual: 0 })),
    optionalText(body, "search") ?? "",
    column,
    isDescending ? "desc" : "asc",
  ];
  const text =
    "select pg_catalog.to_json(entry)::pg_catalog.text from storage.search($1, $2, $3, 1, $4, $5, $6, $7) as entry";
  return jsonResponse(200, await request.rows.read(text, values));
}

/** Returns an entry with its name within its folder. */
function shownEntry({ id, name, updated_at, created_at, last_accessed_at, metadata, user_metadata }: ObjectRow) {
  const entry = name.slice(name.lastIndexOf("/") + 1);
  return { name: entry, id, updated_at, created_at, last_accessed_at, metadata, user_metadata };
}

export type ListedEntry = {
  readonly entry: string;
  readonly is_folder: boolean;
  readonly object: ObjectRow | null;
  readonly at?: string;
};

type Cursor = { readonly entry: string; readonly at?: string | undefined };

/** Lists a page by cursor; names are whole. */
async function listPage(request: StorageRequest) {
  const body = await readJsonBody(request);
  const limit = wholeNumber(body, "limit", { least: 1, most: 1000, usual: 1000 });
  const { column, isDescending } = readSorting(body, SORT_COLUMNS.slice(0, 3));
  const cursor = readCursor(optionalText(body, "cursor"));
  const bucket = request.parameters.bucket!;
  const prefix = optionalText(body, "prefix") ?? "";
  if (body.exactMatch === true) {
    const objects = await request.rows.findAll(bucket, [prefix]);
    return jsonResponse(200, { hasNext: false, folders: [], objects: objects.map(shownObject) });
  }
  const common = [bucket, prefix, String(body.with_delimiter === true), String(isDescending)];
  const found =
    column === "name"
      ? await request.rows.read<ListedEntry>(LIST_NAMES, [...common, cursor?.entry ?? null, String(limit + 1)])
      : await request.rows.read<ListedEntry>(LIST_TIMES, [
          ...common,
          String(column === "updated_at"),
          cursor?.at ?? null,
          cursor?.entry ?? null,
          String(limit + 1),
        ]);
  const page = found.slice(0, limit);
  const last = page.at(-1);
  const hasNext = found.length > limit;
  return jsonResponse(200, {
    hasNext,
    folders: page.filter((each) => each.is_folder).map(({ entry }) => ({ key: entry.slice(0, -1), name: entry })),
    objects: page.flatMap(({ object }) => (object ? [shownObject(object)] : [])),
    ...(hasNext && last && { nextCursor: writeCursor({ entry: last.entry, at: last.at }) }),
  });
}

export const LIST_NAMES =
  "select pg_catalog.to_json(listed)::pg_catalog.text from storage.list_names($1, $2, $3, $4, $5, $6) as listed";
const LIST_TIMES =
  "select pg_catalog.to_json(listed)::pg_catalog.text from storage.list_times($1, $2, $3, $4, $5, $6, $7, $8) as listed";

function shownObject({ id, name, updated_at, created_at, last_accessed_at, metadata }: ObjectRow) {
  return { id, key: name, name, updated_at, created_at, last_accessed_at, metadata };
}

function readSorting(body: JsonObject, columns: readonly string[]) {
  const sortBy = isJsonObject(body.sortBy) ? body.sortBy : {};
  const { column = "name", order = "asc" } = sortBy;
  if (typeof column !== "string" || !columns.includes(column))
    throw storageError("InvalidRequest", "body/sortBy/column must be equal to one of the allowed values");
  return { column, isDescending: String(order).toLowerCase() === "desc" };
}

function writeCursor(cursor: Cursor): string {
  return Buffer.from(JSON.stringify(cursor)).toString("base64url");
}

function readCursor(text: string | null): Cursor | null {
  if (text === null || text === "") return null;
  try {
    const { entry, at } = JSON.parse(Buffer.from(text, "base64url").toString("utf8")) as Cursor;
    if (typeof entry === "string" && !entry.includes("\0"))
      return { entry, at: typeof at === "string" ? at : undefined };
  } catch {
    // The text is not a cursor of ours.
  }
  throw storageError("InvalidRequest", "Invalid cursor");
}
