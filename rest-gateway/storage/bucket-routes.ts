import { HttpError, jsonResponse } from "#http";
import { storageError } from "./storage-error.ts";
import {
  type JsonBody,
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

async function findBucket(id: string, rows: StorageRequest["rows"]): Promise<BucketRow> {
  const [bucket] = await rows.read<BucketRow>(FIND_BUCKETS, [id, null, "name", "false", "1", "0"]);
  if (!bucket) throw storageError("NoSuchBucket");
  return bucket;
}

type BucketRow = Readonly<Record<string, unknown>>;

function shownBucket({ owner_id: _ownerId, avif_autodetection: _unused, ...bucket }: BucketRow): BucketRow {
  return { ...bucket, owner: bucket.owner ?? _ownerId ?? "" };
}

async function createBucket(request: StorageRequest) {
  const body = await readJsonBody(request);
  const name = requiredText(body, "name");
  const id = optionalText(body, "id") ?? name;
  const terms = readTerms(body);
  const values = [id, ownerOf(request.caller), terms.isPublic, terms.maxBytes, terms.types];
  try {
    await request.rows.write(
      `select pg_catalog.to_json(storage.put_bucket($1, $2, $3, $4, ${typesOf("$5")})::pg_catalog.text)`,
      values,
    );
  } catch (error) {
    throw hasCode(error, "KeyAlreadyExists") ? storageError("BucketAlreadyExists", undefined, { cause: error }) : error;
  }
  return jsonResponse(200, { name: id });
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
  const id = parameters.bucket!;
  await findBucket(id, rows);
  const removed = await rows.write<string>("select pg_catalog.to_json(id) from storage.remove_bucket($1) as id", [id]);
  if (removed.length === 0) throw storageError("AccessDenied");
  return jsonResponse(200, { message: "Successfully deleted" });
}

async function emptyBucket({ parameters, rows }: StorageRequest) {
  const id = parameters.bucket!;
  await findBucket(id, rows);
  await rows.write("select pg_catalog.to_json(storage.empty_bucket($1))", [id]);
  return jsonResponse(200, { message: "Successfully emptied" });
}

/** The settings of a bucket, as parameters; null: not given. */
function readTerms(body: JsonBody) {
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

/** `20GB`, or a number of bytes. */
function parseSize(limit: unknown): number {
  if (typeof limit === "number" && Number.isSafeInteger(limit) && limit >= 0) return limit;
  const [, digits, unit] = /^(\d{1,9}(?:\.\d{1,3})?)\s*(gb|mb|kb|b)?$/i.exec(String(limit)) ?? [];
  if (digits === undefined)
    throw storageError("InvalidRequest", "Invalid file size format, hint: use 20GB / 20MB / 30KB / 3B");
  return Math.floor(Number(digits) * UNITS[(unit ?? "b").toLowerCase()]!);
}

/** `image/png`, `image/*` or a whole `*`. */
const MEDIA_TYPE = /^(\*|[a-z0-9!#$&^_.+-]{1,127})\/(\*|[a-z0-9!#$&^_.+-]{1,127})$/i;

function readTypes(types: unknown): readonly string[] {
  if (!Array.isArray(types)) throw storageError("InvalidRequest", "body/allowed_mime_types must be array");
  for (const type of types) {
    if (typeof type !== "string" || !MEDIA_TYPE.test(type))
      throw storageError("InvalidMimeType", `mime type ${type} is not supported`);
  }
  return types as string[];
}

/** Null for null and for an empty list, which both mean all types. */
function typesOf(parameter: string): string {
  return `(select pg_catalog.array_agg(value) from pg_catalog.json_array_elements_text(${parameter}::pg_catalog.json) as value)`;
}

function textsOf(parameter: string): string {
  return `array(select pg_catalog.json_array_elements_text(${parameter}::pg_catalog.json))`;
}

function hasCode(error: unknown, code: string): boolean {
  return error instanceof HttpError && error.code === code;
}
