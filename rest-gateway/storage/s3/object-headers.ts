import type { DraftFile } from "#files";
import { sentHeaders } from "../download.ts";
import { OPAQUE_TYPE } from "../media-type.ts";
import type { ObjectMetadata, ObjectRow } from "../object-rows.ts";
import { NO_CACHE, singleLine } from "../upload-body.ts";
import { s3Error } from "./s3-error.ts";
import { headerOf, type S3Request } from "./s3-request.ts";

const USER_PREFIX = "x-amz-meta-";
/** The limit of S3. */
const MAX_USER_BYTES = 2048;

type SentAbout = {
  readonly metadata: ObjectMetadata;
  readonly userMetadata: Readonly<Record<string, string>>;
};

/** Reads the headers of a write that describe the object. */
export function readObjectHeaders(request: S3Request): SentAbout {
  const header = (name: string) => {
    const value = headerOf(request, request.query, name);
    return value === null || value === "" ? undefined : singleLine(value);
  };
  const contentEncoding = header("content-encoding")
    ?.split(",")
    .map((each) => each.trim())
    .filter((each) => each !== "aws-chunked")
    .join(", ");
  return {
    metadata: {
      mimetype: header("content-type") ?? OPAQUE_TYPE,
      cacheControl: header("cache-control") ?? NO_CACHE,
      ...{ contentDisposition: header("content-disposition"), contentLanguage: header("content-language") },
      contentEncoding: contentEncoding || undefined,
      lastModified: new Date().toISOString(),
      httpStatusCode: 200,
    },
    userMetadata: readUserHeaders(request),
  };
}

export function describeContent({ bytes }: Pick<DraftFile, "bytes">, tag: string): ObjectMetadata {
  return { eTag: tag, size: bytes, contentLength: bytes };
}

function readUserHeaders({ headers, query }: S3Request): Readonly<Record<string, string>> {
  const sent = [...Object.entries(headers), ...query].flatMap(([name, value]) => {
    const isUsers = name.toLowerCase().startsWith(USER_PREFIX) && typeof value === "string";
    return isUsers ? [[name.slice(USER_PREFIX.length).toLowerCase(), value] as const] : [];
  });
  const bytes = sent.reduce((sum, [name, value]) => sum + name.length + Buffer.byteLength(value), 0);
  if (bytes > MAX_USER_BYTES) throw s3Error("MetadataTooLarge");
  // Clients encode other characters (RFC 2047); raw bytes are not kept.
  for (const [, value] of sent) if (value !== "") singleLine(value);
  return Object.fromEntries(sent);
}

export function shownObjectHeaders(row: ObjectRow): Record<string, string> {
  const { metadata, user_metadata: own } = row;
  const users = Object.entries(own ?? {}).filter(
    ([name, value]) => typeof value === "string" && /^[\w.-]{1,128}$/.test(name) && /^[\x20-\x7e]*$/.test(value),
  ) as [string, string][];
  return {
    ...(metadata?.cacheControl && { "Cache-Control": metadata.cacheControl }),
    ...sentHeaders(row),
    ...Object.fromEntries(users.map(([name, value]) => [`${USER_PREFIX}${name.toLowerCase()}`, value])),
  };
}
