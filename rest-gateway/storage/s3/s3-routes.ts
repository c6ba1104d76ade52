import type { GatewayHandler, MatchedRequest } from "#http";
import { openRequest, type StorageServices } from "../storage-request.ts";
import { isForm } from "../upload-body.ts";
import * as buckets from "./bucket-operations.ts";
import * as lists from "./list-operations.ts";
import * as parts from "./multipart-operations.ts";
import * as objects from "./object-operations.ts";
import { postObject } from "./post-object.ts";
import { makeS3Authentication } from "./s3-authentication.ts";
import { s3Error } from "./s3-error.ts";
import { S3_PREFIX, type S3Handler } from "./s3-request.ts";
import { isSignedRequest } from "./signed-request.ts";

type Operation = {
  readonly method: string;
  readonly parameter?: string;
  readonly header?: string;
  /** The value of `storage.operation()` for policies, without `storage.s3.`. */
  readonly name: string;
  readonly handle: S3Handler;
};

const LIST_BUCKETS: Operation = { method: "GET", name: "bucket.list", handle: buckets.listBuckets };

/** The operations of a bucket, of which the first match is used. */
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
  { method: "GET", parameter: "tagging", name: "object.get_tagging", handle: objects.getObjectTagging },
  { method: "GET", name: "object.get", handle: objects.getObject },
  { method: "HEAD", name: "object.info", handle: objects.getObject },
  { method: "PUT", header: COPY_SOURCE, name: "object.copy", handle: objects.copyObject },
  { method: "PUT", name: "upload", handle: objects.putObjectOfKey },
  { method: "DELETE", name: "object.delete", handle: objects.deleteObject },
];

/** Features of S3 that do not exist here: without this list, `PUT ?acl` would replace an object. */
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

/** Handles `/storage/v1/s3`, in the protocol of S3 clients, with buckets in the path. */
export function s3Handler(services: StorageServices): GatewayHandler {
  const authentication = makeS3Authentication(services);
  return async (request) => {
    const query = new URLSearchParams(request.rawQuery);
    const matched = { ...request, parameters: {}, query };
    const { bucket, key } = readPath(request.path.slice(S3_PREFIX.length));
    if (isFormOfBucket(matched, bucket, key)) return postObject(matched, bucket!, authentication, services);
    const { caller, payload } = await authentication.ofRequest(matched);
    request.admit(caller);
    const { name, handle } = chooseOperation(matched, bucket, key);
    const opened = openRequest(matched, caller, `storage.s3.${name}`, services);
    return handle({ ...opened, payload, bucket, key }, services);
  };
}

/** Returns true for a form, which has its signature in its body. */
function isFormOfBucket(request: MatchedRequest, bucket: string | null, key: string): boolean {
  return request.method === "POST" && bucket !== null && key === "" && isForm(request) && !isSignedRequest(request);
}

function chooseOperation({ method, query, headers }: MatchedRequest, bucket: string | null, key: string): Operation {
  // No object has tags, so they can be read but not changed.
  const isServed = (name: string) => name === "tagging" && method === "GET" && key !== "";
  if ([...query.keys()].some((name) => UNSUPPORTED.has(name) && !isServed(name))) throw s3Error("NotImplemented");
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
