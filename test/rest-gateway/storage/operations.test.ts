import { readFile } from "node:fs/promises";
import { join } from "node:path";
import * as s3 from "@aws-sdk/client-s3";
import { createClient, type SupabaseClient } from "@supabase/supabase-js";
import jwt from "jsonwebtoken";
import sharp from "sharp";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { useClient, useDatabase } from "../../database.ts";
import { useFolder } from "../../fixture.ts";
import { REPOSITORY } from "../../repository.ts";
import { SECRET } from "../../secret.ts";
import { useService } from "../../serve.ts";

// One policy lets everything of one operation, by storage.allow_only_operation: a method succeeds under the name that
// Supabase has for it, and under no other.

const FILE = "a/picture.png";
const OF_FILE = { Bucket: "main", Key: FILE };
const NEW = { Bucket: "main", Key: "a/new" };
const TOKEN = jwt.sign({ role: "authenticated", sub: "1" }, SECRET);

let user: SupabaseClient;
let operator: SupabaseClient;
let s3Client: s3.S3Client;
let picture: Buffer;

const main = () => user.storage.from("main");

/** Resolves with true if the caller may do it, or finds something. */
type Call = () => Promise<unknown>;

const hasSome = (found: readonly unknown[] | undefined) => (found ?? []).length > 0;
const succeeds = async (result: Promise<{ readonly error: unknown }>) => (await result).error === null;
const isDone = (sending: Promise<unknown>) =>
  sending.then(
    () => true,
    () => false,
  );
const isOk = async (path: string, init: RequestInit) =>
  (await fetch(`${service.url}/storage/v1${path}`, { ...init, headers: { ...init.headers, apikey: TOKEN } })).ok;

const BY_STORAGE_JS: readonly (readonly [operation: string, method: string, call: Call])[] = [
  ["storage.bucket.list", "listBuckets", async () => (await user.storage.listBuckets()).data!.length > 0],
  ["storage.bucket.create", "createBucket", () => succeeds(user.storage.createBucket("new"))],
  ["storage.bucket.get", "getBucket", () => succeeds(user.storage.getBucket("main"))],
  ["storage.bucket.update", "updateBucket", () => succeeds(user.storage.updateBucket("main", { public: false }))],
  ["storage.bucket.empty", "emptyBucket", () => succeeds(user.storage.emptyBucket("spare"))],
  ["storage.bucket.delete", "deleteBucket", () => succeeds(user.storage.deleteBucket("spare"))],
  ["storage.object.upload", "upload", () => succeeds(main().upload("a/new", "x"))],
  ["storage.object.upload", "upload with upsert", () => succeeds(main().upload(FILE, "x", { upsert: true }))],
  ["storage.object.upload_update", "update", () => succeeds(main().update(FILE, "x"))],
  ["storage.object.sign_upload_url", "createSignedUploadUrl", () => succeeds(main().createSignedUploadUrl("a/new"))],
  ["storage.object.get_authenticated", "download", () => succeeds(main().download(FILE))],
  ["object.get_authenticated_info", "info", () => succeeds(main().info(FILE))],
  ["object.get_authenticated_info", "exists", async () => (await main().exists(FILE)).data],
  ["object.head_authenticated_info", "HEAD", () => isOk(`/object/main/${FILE}`, { method: "HEAD" })],
  ["storage.object.list", "list", async () => (await main().list("a")).data!.length > 0],
  ["storage.object.list_v2", "listV2", async () => (await main().listV2({ prefix: "a/" })).data!.objects.length > 0],
  ["storage.object.sign", "createSignedUrl", () => succeeds(main().createSignedUrl(FILE, 60))],
  [
    "storage.object.sign_many",
    "createSignedUrls",
    async () => (await main().createSignedUrls([FILE], 60)).data![0]!.error === null,
  ],
  ["storage.object.move", "move", () => succeeds(main().move(FILE, "a/moved"))],
  ["storage.object.copy", "copy", () => succeeds(main().copy(FILE, "a/copy"))],
  ["storage.object.delete_many", "remove", async () => (await main().remove([FILE])).data!.length > 0],
  ["storage.object.delete", "DELETE of one", () => isOk(`/object/main/${FILE}`, { method: "DELETE" })],
  [
    "storage.render.image_authenticated",
    "download of a transformed image",
    () => succeeds(main().download(FILE, { transform: { width: 2 } })),
  ],
];

const BY_S3: readonly (readonly [operation: string, method: string, call: Call])[] = [
  [
    "storage.s3.bucket.list",
    "ListBuckets",
    async () => hasSome((await s3Client.send(new s3.ListBucketsCommand({}))).Buckets),
  ],
  ["storage.s3.bucket.head", "HeadBucket", () => isDone(s3Client.send(new s3.HeadBucketCommand({ Bucket: "main" })))],
  [
    "storage.s3.bucket.get_location",
    "Location",
    () => isDone(s3Client.send(new s3.GetBucketLocationCommand({ Bucket: "main" }))),
  ],
  [
    "storage.s3.bucket.get_versioning",
    "Versioning",
    () => isDone(s3Client.send(new s3.GetBucketVersioningCommand({ Bucket: "main" }))),
  ],
  [
    "storage.s3.bucket.create",
    "CreateBucket",
    () => isDone(s3Client.send(new s3.CreateBucketCommand({ Bucket: "new" }))),
  ],
  [
    "storage.s3.bucket.delete",
    "DeleteBucket",
    () => isDone(s3Client.send(new s3.DeleteBucketCommand({ Bucket: "spare" }))),
  ],
  [
    "storage.s3.object.list",
    "ListObjects",
    async () => hasSome((await s3Client.send(new s3.ListObjectsCommand({ Bucket: "main" }))).Contents),
  ],
  [
    "storage.s3.object.list",
    "ListObjectsV2",
    async () => hasSome((await s3Client.send(new s3.ListObjectsV2Command({ Bucket: "main" }))).Contents),
  ],
  ["storage.s3.object.get", "GetObject", () => isDone(s3Client.send(new s3.GetObjectCommand(OF_FILE)))],
  ["storage.s3.object.info", "HeadObject", () => isDone(s3Client.send(new s3.HeadObjectCommand(OF_FILE)))],
  ["storage.s3.upload", "PutObject", () => isDone(s3Client.send(new s3.PutObjectCommand({ ...NEW, Body: "x" })))],
  [
    "storage.s3.object.copy",
    "CopyObject",
    () => isDone(s3Client.send(new s3.CopyObjectCommand({ ...NEW, CopySource: `main/${FILE}` }))),
  ],
  ["storage.s3.object.delete", "DeleteObject", () => hasDeleted(s3Client.send(new s3.DeleteObjectCommand(OF_FILE)))],
  [
    "storage.s3.object.delete_many",
    "DeleteObjects",
    () =>
      hasDeleted(s3Client.send(new s3.DeleteObjectsCommand({ Bucket: "main", Delete: { Objects: [{ Key: FILE }] } }))),
  ],
  [
    "storage.s3.upload.create_multipart",
    "CreateMultipartUpload",
    () => isDone(s3Client.send(new s3.CreateMultipartUploadCommand(NEW))),
  ],
];

async function hasDeleted(sending: Promise<unknown>): Promise<boolean> {
  await isDone(sending);
  return (await owner.query("select from storage.objects where name = $1", [FILE])).rowCount === 0;
}

const folder = useFolder("operations-");
const database = useDatabase();
const owner = useClient(database.ownerUrl);
beforeAll(async () => {
  await owner.query(await readFile(join(REPOSITORY, "templates/supabase/sql/040-storage.sql"), "utf8"));
  await owner.query(`
    create table public.allowed (operation text);
    create table public.recorded (operation text);
    insert into public.allowed values (null);
    grant select on public.allowed to authenticated;
    create policy "one operation" on storage.objects to authenticated
      using (storage.allow_only_operation((select operation from public.allowed)));
    create policy "one operation" on storage.buckets to authenticated
      using (storage.allow_any_operation(array['none', (select operation from public.allowed)]));
    create function public.record() returns trigger language plpgsql security definer set search_path = '' as $$
    begin
      insert into public.recorded values (storage.operation());
      return new;
    end $$;
    create trigger record before insert or update on storage.objects for each row execute function public.record()`);
});
const service = useService({ database, settings: { STORAGE_DIR: folder } });
beforeAll(async () => {
  user = createClient(service.url, TOKEN);
  operator = createClient(service.url, jwt.sign({ role: "service_role" }, SECRET));
  s3Client = new s3.S3Client({
    ...{ endpoint: `${service.url}/storage/v1/s3`, region: "x", forcePathStyle: true, maxAttempts: 1 },
    credentials: { accessKeyId: "x", secretAccessKey: TOKEN, sessionToken: TOKEN },
  });
  picture = await sharp({ create: { width: 4, height: 4, channels: 3, background: "red" } })
    .png()
    .toBuffer();
});

afterAll(() => s3Client.destroy());

beforeEach(async () => {
  await owner.query(`
    delete from content_service.unfinished_uploads; delete from storage.objects; delete from storage.buckets;
    insert into storage.buckets (id, name) values ('main', 'main'), ('spare', 'spare')`);
  const uploaded = await operator.storage.from("main").upload(FILE, picture, { contentType: "image/png" });
  expect(uploaded.error).toBeNull();
  await owner.query("delete from public.recorded");
});

const allow = (operation: string) => owner.query("update public.allowed set operation = $1", [operation]);
const recorded = async () => (await owner.query("select distinct operation from public.recorded")).rows;

/** Expects a refusal under another name, and none under its own. */
async function expectOnly(operation: string, call: Call): Promise<void> {
  await allow("storage.object.none");
  expect(await call(), `not ${operation}`).toBe(false);
  // Policies name it with or without the prefix.
  await allow(operation.replace(/^storage\./, ""));
  expect(await call(), operation).toBe(true);
}

describe.each([
  ["storage-js", BY_STORAGE_JS],
  ["S3", BY_S3],
] as const)("by %s", (_, methods) => {
  test.each(methods)("%s: %s", (operation, _method, call) => expectOnly(operation, call));
});

test("the requests of an upload in parts", async () => {
  await allow("s3.upload.create_multipart");
  const { UploadId } = await s3Client.send(new s3.CreateMultipartUploadCommand(NEW));
  const upload = { ...NEW, UploadId };
  await expectOnly("storage.s3.upload.part", () =>
    isDone(s3Client.send(new s3.UploadPartCommand({ ...upload, PartNumber: 1, Body: "x" }))),
  );
  const copy = { ...upload, PartNumber: 2, CopySource: `main/${FILE}` };
  await expectOnly("storage.s3.upload.part_copy", () => isDone(s3Client.send(new s3.UploadPartCopyCommand(copy))));
  const { Parts } = await s3Client.send(new s3.ListPartsCommand(upload));
  const complete = { ...upload, MultipartUpload: { Parts: [Parts![0]!] } };
  await expectOnly("storage.s3.upload.complete_multipart", () =>
    isDone(s3Client.send(new s3.CompleteMultipartUploadCommand(complete))),
  );
});

test("the requests of a resumable upload", async () => {
  const metadata = Object.entries({ bucketName: "main", objectName: "a/new", contentType: "text/plain" });
  const headers = { "Tus-Resumable": "1.0.0", "Content-Type": "application/offset+octet-stream" };
  let id = "";
  await expectOnly("storage.tus.upload.create", async () => {
    const response = await fetch(`${service.url}/storage/v1/upload/resumable`, {
      method: "POST",
      headers: {
        ...{ "Tus-Resumable": "1.0.0", "Upload-Length": "1", apikey: TOKEN },
        "Upload-Metadata": metadata.map(([key, value]) => `${key} ${btoa(value)}`).join(","),
      },
    });
    id = response.headers.get("location")?.split("/").at(-1) ?? "";
    return response.ok;
  });
  const path = `/upload/resumable/${id}`;
  await expectOnly("storage.tus.upload.get", () => isOk(path, { method: "HEAD", headers }));
  await expectOnly("storage.tus.upload.part", () =>
    isOk(path, { method: "PATCH", headers: { ...headers, "Upload-Offset": "0" }, body: "x" }),
  );
  expect(await recorded()).toContainEqual({ operation: "storage.tus.upload.part" });
});

test("a trigger learns that an address was signed; statements of other interfaces are for no operation", async () => {
  const { data } = await operator.storage.from("main").createSignedUploadUrl("a/new");
  await owner.query("delete from public.recorded");
  expect((await main().uploadToSignedUrl("a/new", data!.token, "x")).error).toBeNull();
  expect(await recorded()).toEqual([{ operation: "storage.object.upload_signed" }]);
  await owner.query("delete from public.recorded; update storage.objects set user_metadata = null");
  expect(await recorded()).toEqual([{ operation: null }]);
});
