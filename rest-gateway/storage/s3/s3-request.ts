import type { GatewayRequest, GatewayResponse, ResponseBody } from "#http";
import type { ObjectAddress } from "../object-rows.ts";
import { checkName, STORAGE_PREFIX, type StorageRequest, type StorageServices } from "../storage-request.ts";
import { s3Error } from "./s3-error.ts";
import type { SignedPayload } from "./signed-payload.ts";

export const S3_PREFIX = `${STORAGE_PREFIX}/s3`;

/** A request whose signature was verified, and the statements of its caller. */
export type S3Request = StorageRequest & {
  readonly payload: SignedPayload;
  /** The bucket; null for the list of buckets. */
  readonly bucket: string | null;
  /** The key; "" for the bucket. */
  readonly key: string;
};

export type S3Handler = (request: S3Request, services: StorageServices) => Promise<GatewayResponse<ResponseBody>>;

/** Returns a header, or the parameter into which the signer of an address has moved it. */
export function headerOf({ headers }: GatewayRequest, query: URLSearchParams, name: string): string | null {
  const sent = headers[name];
  if (typeof sent === "string") return sent;
  const parameter = [...query].find(([each]) => each.toLowerCase() === name);
  return parameter ? parameter[1] : null;
}

export function bucketOf({ bucket }: S3Request): string {
  if (bucket === null) throw s3Error("MethodNotAllowed");
  return bucket;
}

export function objectOf(request: S3Request): ObjectAddress {
  return { bucket: bucketOf(request), name: checkName(request.key) };
}

/** Returns a whole number of the query, at most `most`. */
export function countOf(query: URLSearchParams, name: string, usual: number, most: number): number {
  const text = query.get(name);
  if (text === null || text === "") return usual;
  if (!/^\d{1,9}$/.test(text)) throw s3Error("InvalidArgument", `${name} must be a whole number.`);
  return Math.min(Number(text), most);
}

/** Reads `x-amz-copy-source`: bucket and key, percent-encoded. */
export function readCopySource(request: S3Request): ObjectAddress {
  const sent = headerOf(request, request.query, "x-amz-copy-source") ?? "";
  const [path = "", version] = sent.replace(/^\//, "").split("?");
  if (version !== undefined) throw s3Error("NotImplemented", "Objects have no versions here.");
  const decoded = decode(path);
  const end = decoded.indexOf("/");
  if (end < 1) throw s3Error("InvalidArgument", "x-amz-copy-source must have a bucket and a key.");
  return { bucket: decoded.slice(0, end), name: checkName(decoded.slice(end + 1)) };
}

function decode(path: string): string {
  try {
    return decodeURIComponent(path);
  } catch (error) {
    throw s3Error("InvalidURI", undefined, { cause: error });
  }
}
