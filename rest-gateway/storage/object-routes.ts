import { randomUUID } from "node:crypto";
import { jsonResponse } from "#http";
import { isJsonObject } from "#runtime/json";
import { OPAQUE_TYPE } from "./media-type.ts";
import {
  keepFile,
  type NewObject,
  nameContent,
  type ObjectAddress,
  type ObjectMetadata,
  type ObjectRow,
  parseRow,
  putObject,
  REMOVE_OBJECTS,
} from "./object-rows.ts";
import { storageError } from "./storage-error.ts";
import {
  addressOf,
  checkName,
  optionalText,
  ownerOf,
  readJsonBody,
  requiredText,
  requiredTexts,
  type StorageRequest,
  type StorageRoutes,
} from "./storage-request.ts";
import { checkType, readUserMetadataHeader, singleLine, type UploadTerms } from "./upload-body.ts";

const MOST_NAMES = 1000;

export const objectRoutes: StorageRoutes = {
  "GET /object/info/public/{bucket}/{path*}": publicInfo,
  "GET /object/info/authenticated/{bucket}/{path*}": info,
  "GET /object/info/{bucket}/{path*}": info,
  "POST /object/move": move,
  "POST /object/copy": copy,
  "DELETE /object/{bucket}": removeAll,
  "DELETE /object/{bucket}/{path*}": removeOne,
};

async function info(request: StorageRequest) {
  const address = addressOf(request);
  const { isPublic } = await request.rows.termsOf(address.bucket).catch(() => ({ isPublic: false }));
  return shownInfo(isPublic ? await request.rows.findPublic(address) : await request.rows.find(address));
}

async function publicInfo(request: StorageRequest) {
  return shownInfo(await request.rows.findPublic(addressOf(request)));
}

function shownInfo({ id, name, version, bucket_id, content, metadata, user_metadata, ...times }: ObjectRow) {
  const info = {
    ...{ id, name, version, bucket_id },
    size: metadata?.size ?? null,
    content_type: metadata?.mimetype ?? null,
    cache_control: metadata?.cacheControl ?? null,
    etag: metadata?.eTag ?? null,
    metadata: user_metadata,
    last_modified: times.updated_at,
    created_at: times.created_at,
  };
  // These headers describe the object, not this text: clients compare them by HEAD.
  const headers = {
    ...(content !== null && { ETag: `"${content}"` }),
    "Last-Modified": new Date(times.updated_at).toUTCString(),
  };
  return jsonResponse(200, info, headers);
}

/** Moves the row; the bytes stay in their place. */
async function move(request: StorageRequest) {
  const { from, to } = await readTransfer(request);
  const terms = to.bucket === from.bucket ? null : await targetTerms(request, to);
  const { id } = await request.rows.transact(async (run) => {
    const text = `select pg_catalog.to_json(object)::pg_catalog.text from storage.move_object($1, $2, $3, $4, $5, $6) as object`;
    const values = [from.bucket, from.name, to.bucket, to.name, ownerOf(request.caller), randomUUID()];
    const [moved] = (await run({ text, values })).rows;
    if (!moved) throw storageError("NoSuchKey");
    const object = parseRow<ObjectRow>(moved[0]);
    // Only the moved row counts: the object may have been replaced since it was looked up. An error undoes the move.
    if (terms) checkTerms(terms, object.metadata ?? {});
    return object;
  });
  return jsonResponse(200, { message: "Successfully moved", Id: id, Key: `${to.bucket}/${to.name}` });
}

async function copy(request: StorageRequest) {
  const { body, from, to } = await readTransfer(request);
  const { rows, caller, headers } = request;
  const source = await rows.find(from);
  if (!source.content) throw storageError("NoSuchKey");
  const keepsMetadata = body.copyMetadata !== false;
  const changed = readMetadata(body.metadata);
  const metadata: ObjectMetadata = {
    ...source.metadata,
    ...(keepsMetadata ? {} : changed),
    lastModified: new Date().toISOString(),
  };
  if (to.bucket !== from.bucket || !keepsMetadata) await checkTarget(request, to, metadata);
  const object: NewObject = {
    ...to,
    owner: ownerOf(caller),
    metadata,
    userMetadata: keepsMetadata ? source.user_metadata : readUserMetadataHeader(request),
    version: randomUUID(),
    replaces: headers["x-upsert"] === "true",
  };
  const { content } = source;
  const id = await rows.transact(async (run) => {
    await putObject(run, object);
    // The size is 0, because the content's size is known.
    await keepFile(run, content, 0);
    return nameContent(run, to, content);
  });
  return jsonResponse(200, {
    Id: id,
    Key: `${to.bucket}/${to.name}`,
    name: to.name,
    bucket_id: to.bucket,
    id,
    metadata,
  });
}

/** Throws unless the bucket accepts an object unchanged: its types and sizes apply to every new object. */
export async function checkTarget(
  request: Pick<StorageRequest, "rows">,
  address: ObjectAddress,
  metadata: ObjectMetadata,
): Promise<void> {
  checkTerms(await targetTerms(request, address), metadata);
}

async function targetTerms({ rows }: Pick<StorageRequest, "rows">, { bucket }: ObjectAddress): Promise<UploadTerms> {
  const { maxBytes, types } = await rows.termsOf(bucket);
  return { maxBytes: maxBytes ?? Number.POSITIVE_INFINITY, types };
}

function checkTerms(terms: UploadTerms, { mimetype, size }: ObjectMetadata): void {
  checkType(singleLine(String(mimetype ?? OPAQUE_TYPE)), terms);
  if (Number(size) > terms.maxBytes) throw storageError("EntityTooLarge");
}

function readMetadata(value: unknown): ObjectMetadata {
  if (!isJsonObject(value)) return {};
  const { cacheControl, mimetype } = value;
  return {
    ...(typeof cacheControl === "string" && { cacheControl: singleLine(cacheControl) }),
    ...(typeof mimetype === "string" && { mimetype: singleLine(mimetype) }),
  };
}

async function readTransfer(request: StorageRequest) {
  const body = await readJsonBody(request);
  const bucket = requiredText(body, "bucketId");
  const from = { bucket, name: checkName(requiredText(body, "sourceKey")) };
  const to = {
    bucket: optionalText(body, "destinationBucket") ?? bucket,
    name: checkName(requiredText(body, "destinationKey")),
  };
  return { body, from, to };
}

async function removeOne(request: StorageRequest) {
  const { bucket, name } = addressOf(request);
  const [removed] = await request.rows.write<ObjectRow>(REMOVE_OBJECTS, [bucket, JSON.stringify([name])]);
  if (!removed) throw storageError("NoSuchKey");
  return jsonResponse(200, { message: "Successfully deleted" });
}

async function removeAll(request: StorageRequest) {
  const body = await readJsonBody(request);
  const names = requiredTexts(body, "prefixes", { max: MOST_NAMES });
  const removed = await request.rows.write<ObjectRow>(REMOVE_OBJECTS, [
    request.parameters.bucket!,
    JSON.stringify(names),
  ]);
  return jsonResponse(200, removed.map(shownRow));
}

/** Returns the row without the name of its content, which is internal. */
function shownRow({ content: _content, ...row }: ObjectRow) {
  return row;
}
