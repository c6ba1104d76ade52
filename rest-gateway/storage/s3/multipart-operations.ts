import { randomUUID } from "node:crypto";
import { Readable } from "node:stream";
import type { Caller } from "#accounts/identity";
import type { BytePart, FileStore } from "#files";
import type { GatewayResponse } from "#http";
import { asLogin } from "#postgres/database";
import { keepFile, type ObjectAddress, type UnfinishedUploadRow, type UploadPart } from "../object-rows.ts";
import { ownerOf, type StorageServices } from "../storage-request.ts";
import { beginUpload, endUpload } from "../unfinished-rows.ts";
import { keepObject, newObject, termsOf, type UploadRight } from "../upload.ts";
import { checkType } from "../upload-body.ts";
import { checkSourceCondition, readWriteCondition } from "./conditions.ts";
import { findTaggedContent, mayNamePart, type NamedPart, PartTags, tagOf } from "./entity-tags.ts";
import { keyWriter } from "./list-operations.ts";
import { checkParts, checksumElements, takeObjectChecksums } from "./object-checksums.ts";
import { describeContent, readObjectHeaders } from "./object-headers.ts";
import { openPayload, type Payload } from "./payload.ts";
import { elementsOf, readXml, textOf } from "./read-xml.ts";
import { s3Error } from "./s3-error.ts";
import { bucketOf, countOf, objectOf, readCopySource, type S3Handler, type S3Request } from "./s3-request.ts";
import { writeDraft, writeTaggedDraft } from "./write-draft.ts";
import { xmlResponse } from "./write-xml.ts";

const MOST_PARTS = 10_000;
/** The minimum size of a part that is not the last. */
const LEAST_PART_BYTES = 5 * 1024 * 1024;
const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

const FIND = "select pg_catalog.to_json(upload)::pg_catalog.text from content_service.find_upload($1, $2) as upload";
const LIST =
  "select pg_catalog.to_json(upload)::pg_catalog.text from content_service.list_uploads($1, $2, $3, $4, $5, $6) as upload";
const PUT_PART = "select pg_catalog.to_json(content_service.put_part($1, $2, $3, $4, $5, $6))::pg_catalog.text";
const LIST_PARTS =
  "select pg_catalog.to_json(part)::pg_catalog.text from content_service.list_parts($1, $2, $3) as part";

export const createMultipartUpload: S3Handler = async (request, { config }) => {
  const address = objectOf(request);
  const { rows } = request;
  const about = readObjectHeaders(request);
  const terms = await termsOf(rows, address, config);
  checkType(about.metadata.mimetype!, terms);
  await rows.checkUpload(newObject(address, rightOf(request)));
  const id = randomUUID();
  const caller = callerOf(request.caller);
  await beginUpload(request, { id, address, caller, about, bytes: 0, maxBytes: terms.maxBytes });
  return xmlResponse("InitiateMultipartUploadResult", { Bucket: address.bucket, Key: address.name, UploadId: id });
};

/** Returns the right to replace an object, as in an upload in one request. */
function rightOf({ caller }: S3Request): UploadRight {
  return { owner: ownerOf(caller), replaces: true };
}

async function findUpload(request: S3Request): Promise<UnfinishedUploadRow> {
  const upload = await readUpload(request);
  if (!upload) throw s3Error("NoSuchUpload");
  return upload;
}

async function readUpload(request: S3Request): Promise<UnfinishedUploadRow | null> {
  const id = request.query.get("uploadId") ?? "";
  const { bucket, name } = objectOf(request);
  const [upload] = UUID.test(id)
    ? await request.rows.readAsService<UnfinishedUploadRow>(FIND, [id, callerOf(request.caller)])
    : [];
  return upload?.bucket_id === bucket && upload.name === name ? upload : null;
}

export const uploadPart: S3Handler = async (request, services) => {
  const { rows } = request;
  const upload = await findUpload(request);
  const address = objectOf(request);
  const { maxBytes } = await termsOf(rows, address, services.config);
  await rows.checkUpload(newObject(address, rightOf(request)));
  if (request.headers["x-amz-copy-source"] !== undefined) {
    const md5 = await keepPart(request, upload, await openSource(request, services.store), maxBytes, services.store);
    return xmlResponse("CopyPartResult", { ETag: `"${md5}"`, LastModified: new Date().toISOString() });
  }
  const payload = openPayload(request, maxBytes);
  const md5 = await keepPart(request, upload, payload, maxBytes, services.store);
  return { status: 200, headers: { ...payload.checksums(), ETag: `"${md5}"` }, body: null };
};

/** Keeps the part, and returns its MD5. */
async function keepPart(
  request: S3Request,
  { id }: UnfinishedUploadRow,
  payload: Payload,
  maxBytes: number,
  store: FileStore,
): Promise<string> {
  const { rows, caller } = request;
  const number = request.query.get("partNumber") ?? "";
  if (!/^\d{1,5}$/.test(number) || Number(number) < 1 || Number(number) > MOST_PARTS)
    throw s3Error("InvalidArgument", "Part number must be an integer between 1 and 10000, inclusive");
  const { draft, md5 } = await writeTaggedDraft(payload, maxBytes, store);
  try {
    const isKept = await rows.transact(async (run) => {
      await keepFile(run, draft.hash, draft.bytes);
      await draft.publish();
      const values = [id, caller.role, number, draft.hash, String(draft.bytes), String(maxBytes)];
      return (await asLogin(run)({ text: PUT_PART, values })).rows[0]?.[0] === "true";
    });
    if (!isKept) throw s3Error("NoSuchUpload");
    return md5;
  } finally {
    await draft.discard();
  }
}

/** Opens a part that is copied from an object. */
async function openSource(request: S3Request, store: FileStore): Promise<Payload> {
  const source = await request.rows.find(readCopySource(request));
  const { content } = source;
  if (content === null) throw s3Error("NoSuchKey");
  checkSourceCondition(request, tagOf(source));
  const sent = request.headers["x-amz-copy-source-range"];
  const [, start, end] = /^bytes=(\d{1,15})-(\d{1,15})$/.exec(typeof sent === "string" ? sent : "") ?? [];
  if (sent !== undefined && end === undefined) throw s3Error("InvalidArgument", "The range must be bytes=first-last.");
  const range = end === undefined ? null : { start: Number(start), end: Number(end) };
  return { content: readContent(content, range, store), checkHash() {} };
}

async function* readContent(hash: string, range: BytePart | null, store: FileStore): AsyncGenerator<Buffer> {
  const file = await store.open(hash);
  if (!file) throw new Error("A content that a row names is not in the file store");
  const part = range ?? { start: 0, end: file.bytes - 1 };
  if (part.end >= file.bytes || part.start > part.end + 1) {
    await file.close();
    throw s3Error("InvalidRange");
  }
  if (part.end < part.start) return void (await file.close());
  const content = await file.read(part);
  yield* content instanceof Readable ? content : [content];
}

export const listParts: S3Handler = async (request) => {
  const { id, bucket_id, name } = await findUpload(request);
  const most = countOf(request.query, "max-parts", 1000, 1000);
  const after = countOf(request.query, "part-number-marker", 0, MOST_PARTS);
  const found = await request.rows.readAsService<UploadPart>(LIST_PARTS, [id, String(after), String(most + 1)]);
  const page = found.slice(0, most);
  return xmlResponse("ListPartsResult", {
    ...{ Bucket: bucket_id, Key: name, UploadId: id, PartNumberMarker: after, MaxParts: most },
    IsTruncated: found.length > most,
    NextPartNumberMarker: page.at(-1)?.number,
    Part: page.map(({ number, content, bytes, stored_at }) => ({
      ...{ PartNumber: number, ETag: `"${content}"`, Size: bytes },
      LastModified: new Date(stored_at).toISOString(),
    })),
  });
};

export const listMultipartUploads: S3Handler = async (request, { config }) => {
  const bucket = bucketOf(request);
  await request.rows.termsOf(bucket);
  const { query, caller } = request;
  const most = countOf(query, "max-uploads", 1000, 1000);
  const prefix = query.get("prefix") ?? "";
  const afterKey = query.get("key-marker") || null;
  const afterId = query.get("upload-id-marker") || null;
  if (afterId !== null && !UUID.test(afterId)) throw s3Error("InvalidArgument", "Invalid upload-id-marker");
  // Anonymous callers are many: who has begun an upload knows its id.
  const isAnonymous = ownerOf(caller) === null && caller.role === config.anonRole;
  const values = [bucket, callerOf(caller), prefix, afterKey, afterId, String(most + 1)];
  const found = isAnonymous ? [] : await request.rows.readAsService<UnfinishedUploadRow>(LIST, values);
  const page = found.slice(0, most);
  const isTruncated = found.length > most;
  const last = page.at(-1);
  const shown = keyWriter(query);
  return xmlResponse("ListMultipartUploadsResult", {
    ...{ Bucket: bucket, Prefix: shown(prefix), MaxUploads: most, IsTruncated: isTruncated },
    ...{ KeyMarker: shown(afterKey ?? ""), UploadIdMarker: afterId ?? "" },
    ...(isTruncated && last && { NextKeyMarker: shown(last.name), NextUploadIdMarker: last.id }),
    EncodingType: query.get("encoding-type") ?? undefined,
    Upload: page.map(({ id, name, started_at }) => ({
      ...{ Key: shown(name), UploadId: id, StorageClass: "STANDARD" },
      Initiated: new Date(started_at).toISOString(),
    })),
  });
};

export const abortMultipartUpload: S3Handler = async (request) => {
  const { id } = await findUpload(request);
  await request.rows.transact((run) => endUpload(run, id));
  return { status: 204, headers: {}, body: null };
};

export const completeMultipartUpload: S3Handler = async (sent, services): Promise<GatewayResponse> => {
  const { request, checksums } = takeObjectChecksums(sent);
  const { rows } = request;
  const address = objectOf(request);
  const upload = await readUpload(request);
  if (!upload) return describeCompleted(address, await findCompleted(request), checksums, services);
  const condition = readWriteCondition(request);
  const right = { ...rightOf(request), replaces: !condition.isNew };
  const parts = await chooseParts(request, upload);
  const { maxBytes } = await termsOf(rows, address, services.config);
  await rows.checkUpload(newObject(address, right));
  const tags = new PartTags();
  const draft = await writeDraft(
    { content: checkParts(readParts(parts, tags, services.store), checksums), checkHash() {} },
    maxBytes,
    services.store,
  );
  const { metadata, userMetadata } = upload.about as ReturnType<typeof readObjectHeaders>;
  const tag = tags.finish();
  const file = { draft, metadata: { ...metadata, ...describeContent(draft, tag) }, userMetadata };
  const { id } = upload;
  const expectedContent = await findTaggedContent(request, address, condition.tag);
  await keepObject(rows, address, right, file, { expectedContent, uploadId: id, version: id });
  return describeCompleted(address, tag, checksums, services);
};

/**
 * Returns the tag of the object that this upload has made, whose version is the id of the upload: a client that has missed the response
 * completes it again.
 */
async function findCompleted(request: S3Request): Promise<string> {
  const { bucket, name } = objectOf(request);
  const [row] = await request.rows.findAllCurrent(bucket, [name]);
  if (!row?.content || row.version !== request.query.get("uploadId")) throw s3Error("NoSuchUpload");
  return tagOf(row);
}

function describeCompleted(
  { bucket, name }: ObjectAddress,
  tag: string,
  checksums: Parameters<typeof checksumElements>[0],
  { config }: Pick<StorageServices, "config">,
): GatewayResponse {
  return xmlResponse("CompleteMultipartUploadResult", {
    Location: `${config.publicUrl ?? ""}/storage/v1/s3/${bucket}/${encodeURI(name)}`,
    ...{ Bucket: bucket, Key: name, ETag: tag },
    ...checksumElements(checksums),
  });
}

/** Returns the parts that the client names, which must exist under these names. */
async function chooseParts(request: S3Request, { id }: UnfinishedUploadRow): Promise<readonly NamedPart[]> {
  const named = elementsOf(await readXml(request, "CompleteMultipartUpload"), "Part").map((part) => ({
    number: Number(textOf(part, "PartNumber")),
    tag: textOf(part, "ETag").replace(/^"|"$/g, ""),
  }));
  if (named.length === 0 || named.length > MOST_PARTS) throw s3Error("MalformedXML");
  if (named.some(({ number }, index) => index > 0 && number <= named[index - 1]!.number))
    throw s3Error("InvalidPartOrder");
  const found = await request.rows.readAsService<UploadPart>(LIST_PARTS, [id, "0", String(MOST_PARTS)]);
  const byNumber = new Map(found.map((part) => [part.number, part]));
  return named.map(({ number, tag }, index) => {
    const part = byNumber.get(number);
    if (!part || !mayNamePart(tag, part)) throw s3Error("InvalidPart");
    if (index < named.length - 1 && part.bytes < LEAST_PART_BYTES) throw s3Error("EntityTooSmall");
    return { ...part, tag };
  });
}

function* readParts(parts: readonly NamedPart[], tags: PartTags, store: FileStore): Generator<AsyncIterable<Buffer>> {
  for (const part of parts) yield tags.read(part, readContent(part.content, null, store));
}

/** Identifies the callers who may continue an upload in parts. */
function callerOf(caller: Caller): string {
  return `${caller.role} ${ownerOf(caller) ?? ""}`;
}
