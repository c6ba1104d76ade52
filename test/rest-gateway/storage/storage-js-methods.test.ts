// Every method and option of the installed storage-js: a newer version that has others fails here until they are decided.

import { gzipSync } from "node:zlib";
import { createClient, type SupabaseClient } from "@supabase/supabase-js";
import jwt from "jsonwebtoken";
import { beforeAll, describe, expect, test } from "vitest";
import { useFolder } from "../../fixture.ts";
import { SECRET } from "../../secret.ts";
import { useService } from "../../serve.ts";

type Buckets = SupabaseClient["storage"];
type Files = ReturnType<Buckets["from"]>;
type Options<Method extends (...values: never[]) => unknown, Index extends number> = NonNullable<
  Parameters<Method>[Index]
>;
type Answer = { readonly data: unknown; readonly error: unknown };
type Calls = Readonly<Record<string, () => PromiseLike<Answer>>>;

const KEY = jwt.sign({ role: "service_role" }, SECRET);

let buckets: Buckets;
let files: Files;

const folder = useFolder("files-");
const service = useService({ settings: { STORAGE_DIR: folder } });
beforeAll(async () => {
  buckets = createClient(service.url, KEY).storage;
  files = buckets.from("kept");
  for (const name of ["kept", "other"]) await buckets.createBucket(name, { public: true });
});

/** Returns every option of the type, undefined if it is left out: a new one does not compile until it is listed. */
function every<Sent extends object>(options: { [Name in keyof Required<Sent>]: Sent[Name] | undefined }): Sent {
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined)) as Sent;
}

const upload = async (name: string, body = "text") => expect((await files.upload(name, body)).error).toBeNull();

const BUCKET_METHODS: Calls = {
  async createBucket() {
    const options = every<Options<Buckets["createBucket"], 1>>({
      ...{ public: false, fileSizeLimit: "1MB", allowedMimeTypes: ["image/*"] },
      ...{ type: "STANDARD", versioningStatus: "DISABLED" },
    });
    return buckets.createBucket("made", options);
  },
  async updateBucket() {
    const options = every<Options<Buckets["updateBucket"], 1>>({
      ...{ public: true, fileSizeLimit: null, allowedMimeTypes: null },
      versioningStatus: undefined,
    });
    return buckets.updateBucket("made", options);
  },
  async listBuckets() {
    const options = every<Options<Buckets["listBuckets"], 0>>({
      ...{ limit: 1, offset: 0, search: "ma", sortColumn: "created_at", sortOrder: "desc" },
    });
    const found = await buckets.listBuckets(options);
    expect(found.data).toMatchObject([{ id: "made", public: true, file_size_limit: null }]);
    return found;
  },
  getBucket: () => buckets.getBucket("made"),
  emptyBucket: () => buckets.emptyBucket("made"),
  deleteBucket: () => buckets.deleteBucket("made"),
  purgeBucketCache: () => buckets.purgeBucketCache("kept", { transformations: true }),
};

const FILE_METHODS: Calls = {
  async upload() {
    const options = every<Options<Files["upload"], 2>>({
      ...{ cacheControl: "60", contentType: "text/css", contentEncoding: "gzip", upsert: true, duplex: "half" },
      ...{ metadata: { made: "by hand" }, headers: { "x-sent": "1" } },
    });
    const uploaded = await files.upload("a", gzipSync("a {}"), options);
    expect(await (await files.download("a")).data?.text()).toBe("a {}");
    const { headers } = await fetch(files.getPublicUrl("a").data.publicUrl);
    expect(headers.get("content-encoding")).toBe("gzip");
    expect(headers.get("cache-control")).toBe("public, max-age=60");
    expect((await files.upload("b", new Blob([gzipSync("b {}")]), options)).error).toBeNull();
    expect(await (await files.download("b")).data?.text()).toBe("b {}");
    return uploaded;
  },
  update: () => files.update("a", "changed", { contentType: "text/plain" }),
  async createSignedUploadUrl() {
    const options = every<Options<Files["createSignedUploadUrl"], 1>>({ upsert: true });
    return files.createSignedUploadUrl("a", options);
  },
  async uploadToSignedUrl() {
    const { data } = await files.createSignedUploadUrl("signed");
    return files.uploadToSignedUrl("signed", data!.token, "signed", { contentType: "text/plain" });
  },
  async copy() {
    await upload("copied");
    const options = every<Options<Files["copy"], 2>>({ destinationBucket: "other", sourceVersionId: undefined });
    expect((await files.copy("copied", "by/copy", options)).data).toEqual({ path: "other/by/copy" });
    return files.copy("copied", "as/json", { copyMetadata: false, metadata: { mimetype: "application/json" } });
  },
  async move() {
    await upload("moved");
    const options = every<Options<Files["move"], 2>>({ destinationBucket: "other", sourceVersionId: undefined });
    const moved = await files.move("moved", "by/move", options);
    expect((await buckets.from("other").exists("by/move")).data).toBe(true);
    return moved;
  },
  async list() {
    for (const name of ["listed/100%25", "listed/1000", "listed/a_b", "listed/aXb"]) await upload(name);
    const options = every<Options<Files["list"], 1>>({
      ...{ limit: 10, offset: 0, search: "100%", sortBy: { column: "created_at", order: "desc" } },
      ...{ noncurrentVersions: "exclude", deleteMarkers: "exclude", exactMatch: false },
    });
    expect((await files.list("listed", options)).data).toMatchObject([{ name: "100%" }]);
    const found = await files.list("listed", { ...options, search: "a_" });
    expect(found.data).toMatchObject([{ name: "a_b" }]);
    expect((await files.list("listed/a_b", { exactMatch: true })).data).toMatchObject([{ name: "a_b" }]);
    expect((await files.list("listed", { exactMatch: true })).data).toEqual([]);
    return found;
  },
  async listV2() {
    for (const name of ["paged/%25", "paged/x", "paged/y/z"]) await upload(name);
    const options = every<Options<Files["listV2"], 0>>({
      ...{ limit: 1, prefix: "paged/", cursor: "", with_delimiter: true, sortBy: { column: "name", order: "desc" } },
      ...{ noncurrentVersions: "exclude", deleteMarkers: "exclude", exactMatch: false },
    });
    const first = await files.listV2(options);
    expect(first.data).toMatchObject({ hasNext: true, folders: [{ name: "paged/y/" }], objects: [] });
    const second = await files.listV2({ ...options, cursor: first.data!.nextCursor! });
    expect(second.data).toMatchObject({ hasNext: true, folders: [], objects: [{ name: "paged/x" }] });
    expect((await files.listV2({ prefix: "paged/%" })).data?.objects).toMatchObject([{ name: "paged/%" }]);
    const exact = await files.listV2({ prefix: "paged/x", exactMatch: true });
    expect(exact.data).toMatchObject({ hasNext: false, folders: [], objects: [{ name: "paged/x" }] });
    expect((await files.listV2({ prefix: "paged/", exactMatch: true })).data?.objects).toEqual([]);
    return second;
  },
  async info() {
    await upload("described");
    const options = every<Options<Files["info"], 1>>({ versionId: undefined });
    const found = await files.info("described", options);
    expect(found.data).toMatchObject({ name: "described", size: 4, contentType: "text/plain;charset=UTF-8" });
    return found;
  },
  async exists() {
    await upload("there");
    expect((await files.exists("not there")).data).toBe(false);
    return files.exists("there");
  },
  async createSignedUrl() {
    await upload("address");
    const options = every<Options<Files["createSignedUrl"], 2>>({
      ...{ download: "as.txt", cacheNonce: "1", transform: undefined, versionId: undefined },
    });
    const signed = await files.createSignedUrl("address", 60, options);
    const response = await fetch(signed.data!.signedUrl);
    expect([response.status, response.headers.get("content-disposition")]).toEqual([
      200,
      expect.stringContaining("as.txt"),
    ]);
    return signed;
  },
  async createSignedUrls() {
    await upload("addresses");
    const options = every<Options<Files["createSignedUrls"], 2>>({ download: true, cacheNonce: "1" });
    const signed = await files.createSignedUrls(["addresses", "nothing"], 60, options);
    expect(signed.data).toMatchObject([{ error: null }, { signedUrl: null, error: expect.any(String) }]);
    expect((await fetch(signed.data![0]!.signedUrl!)).headers.get("content-disposition")).toContain("attachment");
    return signed;
  },
  async download() {
    await upload("down", "0123456789");
    const options = every<Options<Files["download"], 1>>({
      transform: undefined,
      cacheNonce: "1",
      versionId: undefined,
    });
    const stream = await files.download("down", options).asStream();
    expect(await new Response(stream.data).text()).toBe("0123456789");
    const aborted = AbortSignal.abort();
    expect((await files.download("down", {}, { signal: aborted })).error).not.toBeNull();
    return files.download("down", options);
  },
  async getPublicUrl() {
    await upload("public ü");
    const options = every<Options<Files["getPublicUrl"], 1>>({
      ...{ download: true, cacheNonce: "1", transform: undefined, versionId: undefined },
    });
    const { data } = files.getPublicUrl("public ü", options);
    return { data: await (await fetch(data.publicUrl)).text(), error: null };
  },
  async remove() {
    await upload("gone");
    const removed = await files.remove(["gone", "never there"]);
    expect(removed.data).toMatchObject([{ name: "gone" }]);
    return removed;
  },
  purgeCache: () => files.purgeCache("a b/ü", { transformations: true }),
};

/** Methods that the service does not have. */
const REFUSED = {
  buckets: {
    getBucketLifecycle: () => buckets.getBucketLifecycle("kept"),
    updateBucketLifecycle: () => buckets.updateBucketLifecycle("kept", { rules: [] }),
    deleteBucketLifecycle: () => buckets.deleteBucketLifecycle("kept"),
  },
  vectors: {
    createBucket: () => buckets.vectors.createBucket("v"),
    getBucket: () => buckets.vectors.getBucket("v"),
    listBuckets: () => buckets.vectors.listBuckets(),
    deleteBucket: () => buckets.vectors.deleteBucket("v"),
    createIndex: () =>
      buckets.vectors
        .from("v")
        .createIndex({ indexName: "i", dataType: "float32", dimension: 3, distanceMetric: "cosine" }),
    getIndex: () => buckets.vectors.from("v").getIndex("i"),
    listIndexes: () => buckets.vectors.from("v").listIndexes(),
    deleteIndex: () => buckets.vectors.from("v").deleteIndex("i"),
    putVectors: () =>
      buckets.vectors
        .from("v")
        .index("i")
        .putVectors({ vectors: [{ key: "k", data: { float32: [1, 2, 3] } }] }),
    getVectors: () =>
      buckets.vectors
        .from("v")
        .index("i")
        .getVectors({ keys: ["k"] }),
    listVectors: () => buckets.vectors.from("v").index("i").listVectors(),
    queryVectors: () =>
      buckets.vectors
        .from("v")
        .index("i")
        .queryVectors({ queryVector: { float32: [1, 2, 3] }, topK: 1 }),
    deleteVectors: () =>
      buckets.vectors
        .from("v")
        .index("i")
        .deleteVectors({ keys: ["k"] }),
  },
  analytics: {
    createBucket: () => buckets.analytics.createBucket("a"),
    listBuckets: () => buckets.analytics.listBuckets(),
    deleteBucket: () => buckets.analytics.deleteBucket("a"),
  },
  options: {
    "a bucket with versions": () => buckets.createBucket("v", { public: false, versioningStatus: "ENABLED" }),
    "a bucket that gets versions": () => buckets.updateBucket("kept", { public: true, versioningStatus: "ENABLED" }),
    "a bucket for analytics": () => buckets.createBucket("a", { public: false, type: "ANALYTICS" }),
    "a download of a version": () => files.download("a", { versionId: "1" }),
    "the description of a version": () => files.info("a", { versionId: "1" }),
    "an address of a version": () => files.createSignedUrl("a", 60, { versionId: "1" }),
    "a copy of a version": () => files.copy("a", "x", { sourceVersionId: "1" }),
    "a move of a version": () => files.move("a", "x", { sourceVersionId: "1" }),
    "the removal of a version": () => files.remove([{ path: "a", versionId: "1" }]),
    "a list of versions": () => files.list("", { noncurrentVersions: "include" }),
    "a list of delete markers": () => files.listV2({ deleteMarkers: "only" }),
  },
} satisfies Readonly<Record<string, Calls>>;

/** Configuration of the client, and methods that only its own use. */
const LOCAL = {
  all: ["handleOperation", "setHeader", "throwOnError"],
  buckets: ["bucketLifecycleUrl", "from", "listBucketOptionsToQueryString"],
  files: [
    ...["_getFinalPath", "_removeEmptyFolders", "applyTransformOptsToQuery", "encodeMetadata"],
    ...["prepareUploadFormData", "toBase64", "uploadOrUpdate"],
  ],
  vectors: ["from", "index"],
  analytics: ["from"],
};

/** Names of the methods of the classes of an object, of its own too. */
function methodsOf(...instances: readonly object[]): string[] {
  const names = new Set<string>();
  for (const instance of instances) {
    for (let each = instance; each !== Object.prototype; each = Object.getPrototypeOf(each)) {
      for (const [name, { value }] of Object.entries(Object.getOwnPropertyDescriptors(each)))
        if (typeof value === "function" && !["constructor", "fetch", ...LOCAL.all].includes(name)) names.add(name);
    }
  }
  return [...names].sort();
}

test("each method of the installed storage-js is decided", () => {
  const index = buckets.vectors.from("v").index("i");
  expect(methodsOf(buckets)).toEqual(sorted(BUCKET_METHODS, REFUSED.buckets, LOCAL.buckets));
  expect(methodsOf(files)).toEqual(sorted(FILE_METHODS, LOCAL.files));
  expect(methodsOf(buckets.vectors, buckets.vectors.from("v"), index)).toEqual(sorted(REFUSED.vectors, LOCAL.vectors));
  expect(methodsOf(buckets.analytics)).toEqual(sorted(REFUSED.analytics, LOCAL.analytics));
});

function sorted(...named: readonly (object | readonly string[])[]): string[] {
  return named.flatMap((each) => (Array.isArray(each) ? (each as string[]) : Object.keys(each))).sort();
}

describe.each([
  ["buckets", BUCKET_METHODS],
  ["files", FILE_METHODS],
] as const)("methods of %s", (_, calls) => {
  test.each(Object.entries(calls))("%s", async (_name, call) => {
    const { data, error } = await call();
    expect(error).toBeNull();
    expect(data).toBeTruthy();
  });
});

describe.each(Object.entries(REFUSED))("what is missing of %s", (_, calls) => {
  test.each(Object.entries<() => PromiseLike<Answer>>(calls))("%s is refused", async (_name, call) => {
    const { data, error } = await call();
    expect(data).toBeNull();
    expect(error).toMatchObject({ status: 400, message: expect.stringContaining("not supported") });
  });
});

test("tables of analytics buckets are refused by the catalogue's own protocol", async () => {
  const { error } = await buckets.analytics.from("a").listNamespaces();
  expect(error).toBeTruthy();
});

test("bodies of errors are those of Supabase's service", async () => {
  await upload("taken");
  const send = async (method: string, path: string, body?: object) => {
    const response = await fetch(`${service.url}/storage/v1${path}`, {
      method,
      headers: { authorization: `Bearer ${KEY}`, "content-type": "application/json" },
      ...(body && { body: JSON.stringify(body) }),
    });
    return [response.status, await response.json()];
  };
  const refusal = (statusCode: string, error: string, message: string, code: string) => [
    400,
    { statusCode, error, message, code },
  ];
  const noKey = refusal("404", "not_found", "Object not found", "NoSuchKey");
  const noBucket = refusal("404", "Bucket not found", "Bucket not found", "NoSuchBucket");
  expect(await send("GET", "/object/kept/none")).toEqual(noKey);
  expect(await send("GET", "/object/info/kept/none")).toEqual(noKey);
  expect(await send("POST", "/object/sign/kept/none", { expiresIn: 1 })).toEqual(noKey);
  expect(await send("GET", "/bucket/none")).toEqual(noBucket);
  expect(await send("POST", "/object/none/x", {})).toEqual(noBucket);
  expect(await send("POST", "/object/kept/taken", {})).toEqual(
    refusal("409", "Duplicate", "The resource already exists", "KeyAlreadyExists"),
  );
  expect(await send("POST", "/bucket", { name: "kept" })).toEqual(
    refusal("409", "Duplicate", "The resource already exists", "BucketAlreadyExists"),
  );
  expect(await send("GET", "/object/sign/kept/taken?token=x")).toEqual(
    refusal("400", "InvalidJWT", "Invalid JWT", "InvalidJWT"),
  );
});
