import { randomUUID } from "node:crypto";
import { matchesTag } from "#http";
import { contentHeaders, selectPart, sendObject } from "../download.ts";
import { OPAQUE_TYPE, readMediaType } from "../media-type.ts";
import { checkTarget } from "../object-routes.ts";
import {
  keepFile,
  type NewObject,
  nameContent,
  type ObjectRow,
  parseRow,
  putObject,
  REMOVE_OBJECTS,
} from "../object-rows.ts";
import { ownerOf } from "../storage-request.ts";
import { keepObject, newObject, termsOf } from "../upload.ts";
import { checkType } from "../upload-body.ts";
import { checkSourceCondition, readWriteCondition } from "./conditions.ts";
import { findTaggedContent, tagOf } from "./entity-tags.ts";
import { describeContent, readObjectHeaders, shownObjectHeaders } from "./object-headers.ts";
import { openPayload } from "./payload.ts";
import { elementsOf, readXml, textOf } from "./read-xml.ts";
import { s3Error } from "./s3-error.ts";
import { bucketOf, objectOf, readCopySource, type S3Handler, type S3Request } from "./s3-request.ts";
import { writeTaggedDraft } from "./write-draft.ts";
import { xmlResponse } from "./write-xml.ts";

const MOST_NAMES = 1000;

export const getObject: S3Handler = async (request, { store }) => {
  const row = await findObject(request);
  const part = request.query.get("partNumber");
  if (part !== null && part !== "1") throw s3Error("InvalidArgument", "An object is one part here.");
  return sendObject(request, row, store, (bytes) => {
    const tag = tagOf(row);
    const common = { ETag: tag, "Last-Modified": new Date(row.updated_at).toUTCString(), ...shownObjectHeaders(row) };
    if (isUnchanged(request, row, tag)) return { status: 304, part: null, headers: common };
    const { query } = request;
    const type = query.get("response-content-type") ?? row.metadata?.mimetype ?? OPAQUE_TYPE;
    const described = { ...common, ...headersOfType(type), ...overriddenHeaders(query) };
    const chosen = selectPart(request, tag, bytes, described);
    return chosen.status === 200 ? { ...chosen, headers: { ...described, ...checksumHeaders(request, row) } } : chosen;
  });
};

/** Returns the checksum of the whole content, for a client that requests it. */
function checksumHeaders({ headers }: S3Request, { content }: ObjectRow): Record<string, string> {
  if (String(headers["x-amz-checksum-mode"]).toUpperCase() !== "ENABLED") return {};
  return {
    "x-amz-checksum-sha256": Buffer.from(content!, "hex").toString("base64"),
    "x-amz-checksum-type": "FULL_OBJECT",
  };
}

/** Returns the headers of a type. A page keeps its type, which the sandbox of its headers makes harmless. */
function headersOfType(type: string): Record<string, string> {
  const headers = contentHeaders(type);
  return headers["Content-Security-Policy"] && headers["Content-Type"] === "text/plain"
    ? { ...headers, "Content-Type": readMediaType(type).header }
    : headers;
}

export const getObjectTagging: S3Handler = async (request) => {
  await findObject(request);
  return xmlResponse("Tagging", { TagSet: {} });
};

async function findObject(request: S3Request): Promise<ObjectRow> {
  await request.rows.termsOf(bucketOf(request));
  const row = await request.rows.find(objectOf(request));
  if (row.content === null) throw s3Error("NoSuchKey");
  return row;
}

/** Returns true for 304. Throws 412 if a precondition does not hold. */
function isUnchanged({ headers }: S3Request, { updated_at }: ObjectRow, tag: string): boolean {
  const changedAt = Math.floor(Date.parse(updated_at) / 1000) * 1000;
  if (headers["if-match"] !== undefined) {
    if (!matchesTag(headers["if-match"], tag)) throw s3Error("PreconditionFailed");
  } else if (changedAt > Date.parse(headers["if-unmodified-since"] ?? "")) {
    throw s3Error("PreconditionFailed");
  }
  if (headers["if-none-match"] !== undefined) return matchesTag(headers["if-none-match"], tag);
  return changedAt <= Date.parse(headers["if-modified-since"] ?? "");
}

const OVERRIDES = ["Cache-Control", "Content-Disposition", "Content-Encoding", "Content-Language", "Expires"];

function overriddenHeaders(query: URLSearchParams): Record<string, string> {
  const sent = OVERRIDES.flatMap((name) => {
    const value = query.get(`response-${name.toLowerCase()}`);
    return value === null ? [] : [[name, value] as const];
  });
  if (sent.some(([, value]) => !/^[\x20-\x7e]*$/.test(value)))
    throw s3Error("InvalidArgument", "Headers of responses have printable ASCII characters only.");
  return Object.fromEntries(sent);
}

export const putObjectOfKey: S3Handler = async (request, services) => {
  const { rows } = request;
  const address = objectOf(request);
  const { metadata, userMetadata } = readObjectHeaders(request);
  const condition = readWriteCondition(request);
  const right = { owner: ownerOf(request.caller), replaces: !condition.isNew };
  const terms = await termsOf(rows, address, services.config);
  checkType(metadata.mimetype!, terms);
  await rows.checkUpload(newObject(address, right));
  const payload = openPayload(request, terms.maxBytes);
  const { draft, md5 } = await writeTaggedDraft(payload, terms.maxBytes, services.store);
  const tag = `"${md5}"`;
  const file = { draft, metadata: { ...metadata, ...describeContent(draft, tag) }, userMetadata };
  const expectedContent = await findTaggedContent(request, address, condition.tag);
  await keepObject(rows, address, right, file, { expectedContent });
  return { status: 200, headers: { ...payload.checksums(), ETag: tag }, body: null };
};

export const copyObject: S3Handler = async (request) => {
  const { rows, caller } = request;
  const to = objectOf(request);
  const source = await rows.find(readCopySource(request));
  const { content } = source;
  if (content === null) throw s3Error("NoSuchKey");
  checkSourceCondition(request, tagOf(source));
  const sent = readObjectHeaders(request);
  const replaces = request.headers["x-amz-metadata-directive"] === "REPLACE";
  const kept = { ...source.metadata, lastModified: new Date().toISOString() };
  const metadata = replaces ? { ...kept, ...NO_HEADERS, ...sent.metadata } : kept;
  await checkTarget(request, to, metadata);
  const condition = readWriteCondition(request);
  const object: NewObject = {
    ...to,
    owner: ownerOf(caller),
    metadata,
    userMetadata: replaces ? sent.userMetadata : source.user_metadata,
    version: randomUUID(),
    replaces: !condition.isNew,
  };
  const replaced = await findTaggedContent(request, to, condition.tag);
  await rows.transact(async (run) => {
    await putObject(run, object, { content: replaced });
    // The size is 0, because the content's size is known.
    await keepFile(run, content, 0);
    await nameContent(run, to, content);
  });
  return xmlResponse("CopyObjectResult", { ETag: tagOf(source), LastModified: metadata.lastModified });
};

/** The headers that a copy with other headers does not keep. */
const NO_HEADERS = {
  cacheControl: undefined,
  contentDisposition: undefined,
  contentEncoding: undefined,
  contentLanguage: undefined,
};

export const deleteObject: S3Handler = async (request) => {
  const { bucket, name } = objectOf(request);
  await request.rows.termsOf(bucket);
  const { isNew, tag } = readWriteCondition(request);
  if (isNew) throw s3Error("NotImplemented", "A deletion has no condition If-None-Match.");
  if (tag !== null) {
    await removeTagged(request, tag);
    return { status: 204, headers: {}, body: null };
  }
  const [left] = await removeNames(request, [name]);
  if (left !== undefined) throw s3Error("AccessDenied");
  return { status: 204, headers: {}, body: null };
};

export const deleteObjects: S3Handler = async (request) => {
  const bucket = bucketOf(request);
  await request.rows.termsOf(bucket);
  const body = await readXml(request, "Delete");
  const objects = elementsOf(body, "Object");
  // "null" is the version of an object in a bucket without versions.
  if (objects.some(({ VersionId = "" }) => VersionId !== "" && VersionId !== "null"))
    throw s3Error("NotImplemented", "Objects have no versions here.");
  if (objects.some((each) => CONDITIONS_OF_DELETION.some((condition) => each[condition] !== undefined)))
    throw s3Error("NotImplemented", "Delete objects with a condition one by one, with If-Match.");
  const names = objects.map((each) => textOf(each, "Key"));
  if (names.length === 0 || names.length > MOST_NAMES) throw s3Error("MalformedXML");
  const left = new Set(await removeNames(request, names));
  return xmlResponse("DeleteResult", {
    Deleted: body.Quiet === "true" ? undefined : names.filter((name) => !left.has(name)).map((Key) => ({ Key })),
    Error: [...left].map((Key) => ({ Key, Code: "AccessDenied", Message: "Access Denied" })),
  });
};

const CONDITIONS_OF_DELETION = ["ETag", "LastModifiedTime", "Size"] as const;

/** Removes the object if it has the tag, which may be `*`; otherwise the error undoes it. */
async function removeTagged(request: S3Request, tag: string): Promise<void> {
  const { bucket, name } = objectOf(request);
  await request.rows.transact(async (run) => {
    const { rows } = await run({ text: REMOVE_OBJECTS, values: [bucket, JSON.stringify([name])] });
    const removed = rows[0] && parseRow<ObjectRow>(rows[0][0]);
    if (!removed || (tag !== "*" && tagOf(removed) !== `"${tag}"`)) throw s3Error("PreconditionFailed");
  });
}

/** Removes objects. Returns those that the caller may read but not delete. Missing ones count as deleted. */
async function removeNames(request: S3Request, names: readonly string[]): Promise<readonly string[]> {
  const bucket = bucketOf(request);
  await request.rows.write<ObjectRow>(REMOVE_OBJECTS, [bucket, JSON.stringify(names)]);
  return (await request.rows.findAll(bucket, names)).map(({ name }) => name);
}
