import { addBucket, findBucket, removeBucket } from "../bucket-routes.ts";
import { readPayload } from "./payload.ts";
import { bucketOf, type S3Handler } from "./s3-request.ts";
import { xmlResponse } from "./write-xml.ts";

/** The region is not used. */
const MAX_CONFIGURATION_BYTES = 64 * 1024;

export const createBucket: S3Handler = async (request) => {
  await readPayload(request, MAX_CONFIGURATION_BYTES);
  const id = bucketOf(request);
  await addBucket(request, { id, isPublic: null, maxBytes: null, types: null });
  return { status: 200, headers: { Location: `/${id}` }, body: null };
};

export const deleteBucket: S3Handler = async (request) => {
  await removeBucket(request.rows, bucketOf(request));
  return { status: 204, headers: {}, body: null };
};

export const headBucket: S3Handler = async (request) => {
  await findBucket(bucketOf(request), request.rows);
  return { status: 200, headers: { "x-amz-bucket-region": "us-east-1" }, body: null };
};

export const getBucketLocation: S3Handler = async (request) => {
  await findBucket(bucketOf(request), request.rows);
  return xmlResponse("LocationConstraint", {});
};

export const getBucketVersioning: S3Handler = async (request) => {
  await findBucket(bucketOf(request), request.rows);
  return xmlResponse("VersioningConfiguration", {});
};
