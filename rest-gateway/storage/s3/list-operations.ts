import { LIST_NAMES, type ListedEntry } from "../list-routes.ts";
import type { ObjectRow } from "../object-rows.ts";
import { tagOf } from "./entity-tags.ts";
import { s3Error } from "./s3-error.ts";
import { bucketOf, countOf, type S3Handler, type S3Request } from "./s3-request.ts";
import { xmlResponse } from "./write-xml.ts";

export const listObjectsV2: S3Handler = async (request) => {
  const { query } = request;
  const token = query.get("continuation-token");
  const startAfter = query.get("start-after") || null;
  const after = token === null ? startAfter : readToken(token);
  const { entries, last, isTruncated, common, shown } = await readPage(request, after);
  return xmlResponse("ListBucketResult", {
    ...common,
    KeyCount: entries.length,
    ContinuationToken: token ?? undefined,
    StartAfter: startAfter === null ? undefined : shown(startAfter),
    IsTruncated: isTruncated,
    ...(isTruncated && last && { NextContinuationToken: Buffer.from(last).toString("base64url") }),
    ...entriesOf(entries, shown, query.get("fetch-owner") === "true"),
  });
};

export const listObjects: S3Handler = async (request) => {
  const marker = request.query.get("marker") || null;
  const { entries, last, isTruncated, common, shown } = await readPage(request, marker);
  return xmlResponse("ListBucketResult", {
    ...common,
    Marker: shown(marker ?? ""),
    IsTruncated: isTruncated,
    ...(isTruncated && last && { NextMarker: shown(last) }),
    ...entriesOf(entries, shown, true),
  });
};

async function readPage(request: S3Request, after: string | null) {
  const { query, rows } = request;
  const bucket = bucketOf(request);
  const prefix = query.get("prefix") ?? "";
  const delimiter = query.get("delimiter") ?? "";
  const most = countOf(query, "max-keys", 1000, 1000);
  if (delimiter !== "" && delimiter !== "/") throw s3Error("NotImplemented", "The delimiter must be /.");
  if ([prefix, after ?? ""].some((text) => text.includes("\0") || !text.isWellFormed()))
    throw s3Error("InvalidArgument", "Names have no NUL and no lone surrogates.");
  await rows.termsOf(bucket);
  const shown = keyWriter(query);
  const values = [bucket, prefix, String(delimiter === "/"), "false", after, String(most + 1)];
  const found = most === 0 ? [] : await rows.read<ListedEntry>(LIST_NAMES, values);
  const entries = found.slice(0, most);
  return {
    entries,
    last: entries.at(-1)?.entry,
    isTruncated: found.length > most,
    shown,
    common: {
      ...{ Name: bucket, Prefix: shown(prefix), MaxKeys: most },
      ...{ Delimiter: delimiter || undefined, EncodingType: query.get("encoding-type") ?? undefined },
    },
  };
}

function entriesOf(entries: readonly ListedEntry[], shown: (key: string) => string, hasOwner: boolean) {
  return {
    Contents: entries.flatMap(({ object }) => (object ? [shownObject(object, shown, hasOwner)] : [])),
    CommonPrefixes: entries.flatMap(({ is_folder, entry }) => (is_folder ? [{ Prefix: shown(entry) }] : [])),
  };
}

function shownObject(object: ObjectRow, shown: (key: string) => string, hasOwner: boolean) {
  const { name, updated_at, metadata, owner_id } = object;
  return {
    ...{ Key: shown(name), LastModified: new Date(updated_at).toISOString(), ETag: tagOf(object) },
    ...{ Size: metadata?.size ?? 0, StorageClass: "STANDARD" },
    ...(hasOwner && { Owner: { ID: owner_id ?? "", DisplayName: owner_id ?? "" } }),
  };
}

/** Returns the conversion of keys that the client requests: none, or percent-encoding. */
export function keyWriter(query: URLSearchParams): (key: string) => string {
  return query.get("encoding-type") === "url" ? encodeKey : (key) => key;
}

function encodeKey(key: string): string {
  return encodeURIComponent(key).replaceAll("%2F", "/");
}

function readToken(token: string): string {
  const entry = Buffer.from(token, "base64url").toString("utf8");
  if (entry === "") throw s3Error("InvalidArgument", "The continuation token provided is incorrect");
  return entry;
}
