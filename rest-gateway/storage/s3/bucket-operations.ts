import { addBucket, findBucket, findBuckets, removeBucket } from "../bucket-routes.ts";
import { readPayload } from "./payload.ts";
import { bucketOf, countOf, type S3Handler } from "./s3-request.ts";
import { xmlResponse } from "./write-xml.ts";

/** The limit of a bucket configuration, whose region is not used. */
const MAX_CONFIGURATION_BYTES = 64 * 1024;

export const listBuckets: S3Handler = async ({ rows, query }) => {
  const most = countOf(query, "max-buckets", 10_000, 10_000);
  const prefix = query.get("prefix") ?? "";
  const skipped = countOf(query, "continuation-token", 0, 1_000_000);
  const found = await findBuckets(rows, { count: most + 1, skipped });
  const shown = found.slice(0, most).filter(({ id }) => id.startsWith(prefix));
  return xmlResponse("ListAllMyBucketsResult", {
    Owner: { ID: "content-service", DisplayName: "content-service" },
    Buckets: {
      Bucket: shown.map(({ id, created_at }) => ({ Name: id, CreationDate: new Date(created_at).toISOString() })),
    },
    ContinuationToken: found.length > most ? String(skipped + most) : undefined,
  });
};

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
