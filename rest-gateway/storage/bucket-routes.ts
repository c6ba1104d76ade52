import { HttpError, jsonResponse } from "#http";
import type { JsonObject } from "#runtime/json";
import { missingFeature } from "./missing-features.ts";
import type { StorageRows } from "./object-rows.ts";
import { storageError } from "./storage-error.ts";
import {
  optionalText,
  ownerOf,
  readJsonBody,
  requiredText,
  type StorageRequest,
  type StorageRoutes,
} from "./storage-request.ts";

const MAX_BUCKETS = 10_000;
const FIND_BUCKETS =
  "select pg_catalog.to_json(bucket)::pg_catalog.text from storage.find_buckets($1, $2, $3, $4, $5, $6) as bucket";

export const bucketRoutes: StorageRoutes = {
  "GET /bucket": listBuckets,
  "POST /bucket": createBucket,
  "GET /bucket/{bucket}": getBucket,
  "PUT /bucket/{bucket}": updateBucket,
  "DELETE /bucket/{bucket}": deleteBucket,
  "POST /bucket/{bucket}/empty": emptyBucket,
};

async function listBuckets({ query, rows }: StorageRequest) {
  const isDescending = query.get("sortOrder") === "desc";
  const values = [
    null,
    query.get("search"),
    query.get("sortColumn") ?? "name",
    String(isDescending),
    String(readCount(query.get("limit"), MAX_BUCKETS)),
    String(readCount(query.get("offset"), 0)),
  ];
  return jsonResponse(200, (await rows.read<BucketRow>(FIND_BUCKETS, values)).map(shownBucket));
}

function readCount(text: string | null, usual: number): number {
  if (text === null) return usual;
  if (!/^\d{1,9}$/.test(text)) throw storageError("InvalidRequest", "querystring/limit must be integer");
  return Number(text);
}

async function getBucket({ parameters, rows }: StorageRequest) {
  return jsonResponse(200, shownBucket(await findBucket(parameters.bucket!, rows)));
}

/** Finds a page of buckets, in the order of names. */
export function findBuckets(rows: StorageRows, { count, skipped }: { count: number; skipped: number }) {
  return rows.read<BucketRow>(FIND_BUCKETS, [null, null, "name", "false", String(count), String(skipped)]);
}

export async function findBucket(id: string, rows: StorageRows): Promise<BucketRow> {
  const [bucket] = await rows.read<BucketRow>(FIND_BUCKETS, [id, null, "name", "false", "1", "0"]);
  if (!bucket) throw storageError("NoSuchBucket");
  return bucket;
}

type BucketRow = Readonly<Record<string, unknown>> & { readonly id: string; readonly created_at: string };

/** Returns a bucket with Supabase's columns. */
function shownBucket(row: BucketRow) {
  const { owner_id, avif_autodetection: _unused, max_bytes: _bytes, max_bytes_of_owner: _ofOwner, ...bucket } = row;
  return { ...bucket, owner: bucket.owner ?? owner_id ?? "" };
}

async function createBucket(request: StorageRequest) {
  const body = await readJsonBody(request);
  if ((body.type ?? "STANDARD") !== "STANDARD") throw missingFeature("Analytics buckets");
  const name = requiredText(body, "name");
  const id = optionalText(body, "id") ?? name;
  await addBucket(request, { id, ...readTerms(body) });
  return jsonResponse(200, { name: id });
}

export async function addBucket(
  { rows, caller }: Pick<StorageRequest, "rows" | "caller">,
  { id, isPublic, maxBytes, types }: { readonly id: string } & ReturnType<typeof readTerms>,
): Promise<void> {
  try {
    await rows.write(
      `select pg_catalog.to_json(storage.put_bucket($1, $2, $3, $4, ${typesOf("$5")})::pg_catalog.text)`,
      [id, ownerOf(caller), isPublic, maxBytes, types],
    );
  } catch (error) {
    throw hasCode(error, "KeyAlreadyExists") ? storageError("BucketAlreadyExists", undefined, { cause: error }) : error;
  }
}

async function updateBucket(request: StorageRequest) {
  const id = request.parameters.bucket!;
  const body = await readJsonBody(request);
  const { isPublic, maxBytes, types } = readTerms(body);
  await findBucket(id, request.rows);
  const clears = ["file_size_limit", "allowed_mime_types"].filter((name) => body[name] === null);
  const text = `select pg_catalog.to_json(id) from storage.change_bucket($1, $2, $3, ${typesOf("$4")}, ${textsOf("$5")}) as id`;
  const changed = await request.rows.write<string>(text, [id, isPublic, maxBytes, types, JSON.stringify(clears)]);
  if (changed.length === 0) throw storageError("AccessDenied");
  return jsonResponse(200, { message: "Successfully updated" });
}

async function deleteBucket({ parameters, rows }: StorageRequest) {
  await removeBucket(rows, parameters.bucket!);
  return jsonResponse(200, { message: "Successfully deleted" });
}

export async function removeBucket(rows: StorageRows, id: string): Promise<void> {
  await findBucket(id, rows);
  const removed = await rows.write<string>("select pg_catalog.to_json(id) from storage.remove_bucket($1) as id", [id]);
  if (removed.length === 0) throw storageError("AccessDenied");
}

async function emptyBucket({ parameters, rows }: StorageRequest) {
  const id = parameters.bucket!;
  await findBucket(id, rows);
  await rows.write("select pg_catalog.to_json(storage.empty_bucket($1))", [id]);
  return jsonResponse(200, { message: "Successfully emptied" });
}

/** Reads the settings of a bucket, as parameters; null if they are missing. */
function readTerms(body: JsonObject) {
  const { public: isPublic, file_size_limit: limit, allowed_mime_types: types } = body;
  if (isPublic !== undefined && isPublic !== null && typeof isPublic !== "boolean")
    throw storageError("InvalidRequest", "body/public must be boolean");
  return {
    isPublic: typeof isPublic === "boolean" ? String(isPublic) : null,
    maxBytes: limit === undefined || limit === null ? null : String(parseSize(limit)),
    types: types === undefined || types === null ? null : JSON.stringify(readTypes(types)),
  };
}

const UNITS: Readonly<Record<string, number>> = { b: 1, kb: 1e3, mb: 1e6, gb: 1e9 };

/** Parses `20GB`, or a number of bytes. */
function parseSize(limit: unknown): number {
  if (typeof limit === "number" && Number.isSafeInteger(limit) && limit >= 0) return limit;
  const [, digits, unit] = /^(\d{1,9}(?:\.\d{1,3})?)\s*(gb|mb|kb|b)?$/i.exec(String(limit)) ?? [];
  if (digits === undefined)
    throw storageError("InvalidRequest", "Invalid file size format, hint: use 20GB / 20MB / 30KB / 3B");
  return Math.floor(Number(digits) * UNITS[(unit ?? "b").toLowerCase()]!);
}

/** A media type: `image/png`, `image/*` or a whole `*`. */
const MEDIA_TYPE = /^(\*|[a-z0-9!#$&^_.+-]{1,127})\/(\*|[a-z0-9!#$&^_.+-]{1,127})$/i;

function readTypes(types: unknown): readonly string[] {
  if (!Array.isArray(types)) throw storageError("InvalidRequest", "body/allowed_mime_types must be array");
  for (const type of types) {
    if (typeof type !== "string" || !MEDIA_TYPE.test(type))
      throw storageError("InvalidMimeType", `mime type ${type} is not supported`);
  }
  return types as string[];
}

/** Makes the SQL of an array of types; null for null and for an empty list, which both mean all types. */
function typesOf(parameter: string): string {
  return `(select pg_catalog.array_agg(value) from pg_catalog.json_array_elements_text(${parameter}::pg_catalog.json) as value)`;
}

function textsOf(parameter: string): string {
  return `array(select pg_catalog.json_array_elements_text(${parameter}::pg_catalog.json))`;
}

function hasCode(error: unknown, code: string): boolean {
  return error instanceof HttpError && error.code === code;
}
