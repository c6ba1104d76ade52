import { callerFromClaims, canIssueTokens, makeRoleKey } from "#accounts/identity";
import { type GatewayHandler, type MatchedRequest, toHttpError } from "#http";
import { openRows, STORAGE_PREFIX, type StorageServices } from "../storage-request.ts";
import * as buckets from "./bucket-operations.ts";
import * as lists from "./list-operations.ts";
import * as parts from "./multipart-operations.ts";
import * as objects from "./object-operations.ts";
import { s3Error } from "./s3-error.ts";
import type { S3Handler } from "./s3-request.ts";
import { verifySignedRequest } from "./signed-request.ts";

export const S3_PREFIX = `${STORAGE_PREFIX}/s3`;

type Operation = { readonly method: string; readonly parameter?: string; readonly handle: S3Handler };

const { notImplemented } = buckets;

/** The first that matches. */
const OF_BUCKET: readonly Operation[] = [
  { method: "GET", parameter: "location", handle: buckets.getBucketLocation },
  { method: "GET", parameter: "versioning", handle: buckets.getBucketVersioning },
  { method: "GET", parameter: "uploads", handle: parts.listMultipartUploads },
  { method: "POST", parameter: "delete", handle: objects.deleteObjects },
  { method: "GET", parameter: "list-type", handle: lists.listObjectsV2 },
  { method: "GET", handle: lists.listObjects },
  { method: "HEAD", handle: buckets.headBucket },
  { method: "PUT", handle: buckets.createBucket },
  { method: "DELETE", handle: buckets.deleteBucket },
];
const OF_OBJECT: readonly Operation[] = [
  { method: "POST", parameter: "uploads", handle: parts.createMultipartUpload },
  { method: "POST", parameter: "uploadId", handle: parts.completeMultipartUpload },
  { method: "PUT", parameter: "uploadId", handle: parts.uploadPart },
  { method: "GET", parameter: "uploadId", handle: parts.listParts },
  { method: "DELETE", parameter: "uploadId", handle: parts.abortMultipartUpload },
  { method: "GET", handle: objects.getObject },
  { method: "HEAD", handle: objects.getObject },
  { method: "PUT", handle: objects.putObjectOfKey },
  { method: "DELETE", handle: objects.deleteObject },
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
    const handle = chooseOperation(request.method, query, bucket, key);
    const rows = openRows(matched, caller, services);
    return handle({ ...matched, caller, rows, payload, bucket, key }, services);
  };
}

function chooseOperation(method: string, query: URLSearchParams, bucket: string | null, key: string): S3Handler {
  if ([...query.keys()].some((name) => UNSUPPORTED.has(name))) return notImplemented;
  if (bucket === null) {
    if (method !== "GET") throw s3Error("MethodNotAllowed");
    return lists.listBuckets;
  }
  const operations = key === "" ? OF_BUCKET : OF_OBJECT;
  const found = operations.find((each) => each.method === method && (!each.parameter || query.has(each.parameter)));
  if (!found) throw s3Error("MethodNotAllowed");
  return found.handle;
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
