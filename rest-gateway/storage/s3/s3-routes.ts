import { callerFromClaims, canIssueTokens, makeRoleKey } from "#accounts/identity";
import { type GatewayHandler, type MatchedRequest, toHttpError } from "#http";
import { openRequest, STORAGE_PREFIX, type StorageServices } from "../storage-request.ts";
import * as buckets from "./bucket-operations.ts";
import * as lists from "./list-operations.ts";
import * as parts from "./multipart-operations.ts";
import * as objects from "./object-operations.ts";
import { s3Error } from "./s3-error.ts";
import type { S3Handler } from "./s3-request.ts";
import { verifySignedRequest } from "./signed-request.ts";

export const S3_PREFIX = `${STORAGE_PREFIX}/s3`;

type Operation = {
  readonly method: string;
  readonly parameter?: string;
  readonly header?: string;
  /** What policies learn from `storage.operation()`, without `storage.s3.`. */
  readonly name: string;
  readonly handle: S3Handler;
};

const LIST_BUCKETS: Operation = { method: "GET", name: "bucket.list", handle: buckets.listBuckets };

/** The first that matches. */
const OF_BUCKET: readonly Operation[] = [
  { method: "GET", parameter: "location", name: "bucket.get_location", handle: buckets.getBucketLocation },
  { method: "GET", parameter: "versioning", name: "bucket.get_versioning", handle: buckets.getBucketVersioning },
  { method: "GET", parameter: "uploads", name: "upload.list_multipart", handle: parts.listMultipartUploads },
  { method: "POST", parameter: "delete", name: "object.delete_many", handle: objects.deleteObjects },
  { method: "GET", parameter: "list-type", name: "object.list", handle: lists.listObjectsV2 },
  { method: "GET", name: "object.list", handle: lists.listObjects },
  { method: "HEAD", name: "bucket.head", handle: buckets.headBucket },
  { method: "PUT", name: "bucket.create", handle: buckets.createBucket },
  { method: "DELETE", name: "bucket.delete", handle: buckets.deleteBucket },
];
const COPY_SOURCE = "x-amz-copy-source";
const OF_OBJECT: readonly Operation[] = [
  { method: "POST", parameter: "uploads", name: "upload.create_multipart", handle: parts.createMultipartUpload },
  { method: "POST", parameter: "uploadId", name: "upload.complete_multipart", handle: parts.completeMultipartUpload },
  { method: "PUT", parameter: "uploadId", header: COPY_SOURCE, name: "upload.part_copy", handle: parts.uploadPart },
  { method: "PUT", parameter: "uploadId", name: "upload.part", handle: parts.uploadPart },
  { method: "GET", parameter: "uploadId", name: "upload.list_parts", handle: parts.listParts },
  { method: "DELETE", parameter: "uploadId", name: "upload.abort_multipart", handle: parts.abortMultipartUpload },
  { method: "GET", name: "object.get", handle: objects.getObject },
  { method: "HEAD", name: "object.info", handle: objects.getObject },
  { method: "PUT", header: COPY_SOURCE, name: "object.copy", handle: objects.copyObject },
  { method: "PUT", name: "upload", handle: objects.putObjectOfKey },
  { method: "DELETE", name: "object.delete", handle: objects.deleteObject },
];

/** What S3 has and this service has not: without this list, `PUT ?acl` would replace an object. */
const UNSUPPORTED = new Set([
  ...[
    "accelerate",
    "acl",
    "analytics",
    "attributes",
    "cors",
    "encryption",
    "intelligent-tiering",
    "inventory",
    "legal-hold",
  ],
  ...["lifecycle", "logging", "metrics", "notification", "object-lock", "ownershipControls", "policy", "policyStatus"],
  ...["publicAccessBlock", "replication", "requestPayment", "restore", "retention", "select", "tagging", "torrent"],
  ...["versionId", "versions", "website", "append", "renameObject"],
]);

/** `/storage/v1/s3`, as clients of S3 speak it, with buckets in the path. */
export function s3Handler(services: StorageServices): GatewayHandler {
  const authenticate = makeS3Authentication(services);
  return async (request) => {
    const query = new URLSearchParams(request.rawQuery);
    const matched = { ...request, parameters: {}, query };
    const { caller, payload } = await authenticate(matched);
    request.admit(caller);
    const { bucket, key } = readPath(request.path.slice(S3_PREFIX.length));
    const { name, handle } = chooseOperation(matched, bucket, key);
    const opened = openRequest(matched, caller, `storage.s3.${name}`, services);
    return handle({ ...opened, payload, bucket, key }, services);
  };
}

function chooseOperation({ method, query, headers }: MatchedRequest, bucket: string | null, key: string): Operation {
  if ([...query.keys()].some((name) => UNSUPPORTED.has(name))) throw s3Error("NotImplemented");
  if (bucket === null) {
    if (method !== "GET") throw s3Error("MethodNotAllowed");
    return LIST_BUCKETS;
  }
  const found = (key === "" ? OF_BUCKET : OF_OBJECT).find(
    (each) =>
      each.method === method &&
      (!each.parameter || query.has(each.parameter)) &&
      (!each.header || headers[each.header] !== undefined),
  );
  if (!found) throw s3Error("MethodNotAllowed");
  return found;
}

function readPath(path: string): { readonly bucket: string | null; readonly key: string } {
  const [, bucket = "", ...rest] = path.split("/");
  try {
    return { bucket: bucket === "" ? null : decodeURIComponent(bucket), key: decodeURIComponent(rest.join("/")) };
  } catch (error) {
    throw s3Error("InvalidURI", undefined, { cause: error });
  }
}

const SERVICE = callerFromClaims({ kind: "key", claimsText: '{"role":"service_role"}', expiresAt: null });

/**
 * The caller is that of the session token: any access token or API key. The secret is the token itself or, as at Supabase, the
 * public key of the deployment. The access key of the settings is the service role.
 */
function makeS3Authentication({ authenticate, keys, config }: StorageServices) {
  const { s3AccessKeyId, s3AccessKeySecret, anonRole } = config;
  const publicKey = canIssueTokens(keys) ? [makeRoleKey(anonRole, keys, config)] : [];
  const ofSettings = s3AccessKeyId !== null && s3AccessKeySecret !== null ? [s3AccessKeySecret] : [];
  const findSecrets = (accessKeyId: string, sessionToken: string | null) => {
    if (sessionToken !== null) return [sessionToken, ...publicKey];
    return accessKeyId === s3AccessKeyId ? ofSettings : [];
  };
  return async (request: MatchedRequest) => {
    const { sessionToken, payload } = verifySignedRequest(request, request.query, findSecrets);
    if (sessionToken === null) return { caller: SERVICE, payload };
    try {
      const { authorization: _signature, ...headers } = request.headers;
      const apikey = sessionToken;
      return { caller: await authenticate({ ...request, rawQuery: "", headers: { ...headers, apikey } }), payload };
    } catch (error) {
      const { status, code, message } = toHttpError(error);
      if (status !== 401) throw error;
      throw s3Error(code === "TOKEN_EXPIRED" ? "ExpiredToken" : "InvalidToken", message, { cause: error });
    }
  };
}
