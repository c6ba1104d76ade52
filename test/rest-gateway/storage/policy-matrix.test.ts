import * as s3 from "@aws-sdk/client-s3";
import { getSignedUrl } from "@aws-sdk/s3-request-presigner";
import { createClient, type SupabaseClient } from "@supabase/supabase-js";
import jwt from "jsonwebtoken";
import type pg from "pg";
import sharp from "sharp";
import { beforeAll, describe, expect, test } from "vitest";
import { useClient, useDatabase } from "../../database.ts";
import { useFolder } from "../../fixture.ts";
import { shareOf } from "../../property-runs.ts";
import { SECRET } from "../../secret.ts";
import { useService } from "../../serve.ts";

// The tests compare each method of storage-js, S3, TUS and signed addresses with the same access in SQL in the caller's role.

type Claims = { readonly role: string; readonly sub?: string };

const CALLERS: Readonly<Record<string, Claims>> = {
  anonymous: { role: "anon" },
  owner: { role: "authenticated", sub: "1" },
  "another user": { role: "authenticated", sub: "2" },
  service: { role: "service_role" },
  administrator: { role: "admin", sub: "9" },
};

const OWN = "(storage.foldername(name))[1] = (select auth.uid())::text";
const POLICIES: Readonly<Record<string, readonly string[]>> = {
  "no policy": [],
  "own files may be read": [`on storage.objects for select to authenticated using (${OWN})`],
  "own files may be added, and are not read": [
    `on storage.objects for insert to authenticated with check (${OWN})`,
    "on storage.buckets for select to authenticated using (true)",
  ],
  "own files may be read and changed": [
    `on storage.objects for select to authenticated using (${OWN})`,
    `on storage.objects for update to authenticated using (${OWN})`,
  ],
  "own files may be deleted, and are not read": [`on storage.objects for delete to authenticated using (${OWN})`],
  "own files are the user's": [
    `on storage.objects to authenticated using (${OWN}) with check (${OWN})`,
    "on storage.buckets for select to authenticated using (true)",
  ],
  "everybody reads all, and nobody adds to another bucket": [
    "on storage.objects for select using (true)",
    `on storage.objects for insert with check (bucket_id = 'main')`,
    `on storage.objects for update using (true) with check (bucket_id = 'main')`,
    "on storage.objects for delete using (true)",
  ],
  "buckets may be made, changed and deleted by users": ["on storage.buckets to authenticated using (true)"],
};

const FILE = "1/picture.png";
const PUT = (name: string) => `insert into storage.objects (bucket_id, name) values ('main', '${name}')`;
const PUT_OR_REPLACE = (name: string) =>
  `${PUT(name)} on conflict (bucket_id, name) do update set metadata = excluded.metadata`;
const REPLACE = PUT_OR_REPLACE(FILE);
const DELETE = `delete from storage.objects where bucket_id = 'main' and name = '${FILE}'`;
const READ = `select name from storage.objects where bucket_id = 'main' and name = '${FILE}'`;
const BUCKET = (id: string) => `select id from storage.buckets where id = '${id}'`;

type Result = { readonly error: unknown };
type Method = {
  readonly call: (client: SupabaseClient) => Promise<Result | boolean>;
  /** The method succeeds if each statement succeeds, and touches a row. */
  readonly sql: readonly string[];
};

const main = (client: SupabaseClient) => client.storage.from("main");
const METHODS: Readonly<Record<string, Method>> = {
  download: { call: (client) => main(client).download(FILE), sql: [READ] },
  "download of a transformed image": {
    call: (client) => main(client).download(FILE, { transform: { width: 2 } }),
    sql: [READ],
  },
  info: { call: (client) => main(client).info(FILE), sql: [READ] },
  exists: { call: async (client) => (await main(client).exists(FILE)).data, sql: [READ] },
  list: { call: async (client) => (await main(client).list("1")).data!.length > 0, sql: [READ] },
  listV2: {
    call: async (client) => (await main(client).listV2({ prefix: "1/" })).data!.objects.length > 0,
    sql: [READ],
  },
  createSignedUrl: { call: (client) => main(client).createSignedUrl(FILE, 60), sql: [READ] },
  "createSignedUrl of a transformed image": {
    call: (client) => main(client).createSignedUrl(FILE, 60, { transform: { width: 2 } }),
    sql: [READ],
  },
  createSignedUrls: {
    call: async (client) => (await main(client).createSignedUrls([FILE], 60)).data![0]!.error === null,
    sql: [READ],
  },
  upload: { call: (client) => main(client).upload("1/new", "x"), sql: [PUT("1/new")] },
  "upload with upsert": { call: (client) => main(client).upload(FILE, "x", { upsert: true }), sql: [REPLACE] },
  update: { call: (client) => main(client).update(FILE, "x"), sql: [REPLACE] },
  createSignedUploadUrl: { call: (client) => main(client).createSignedUploadUrl("1/new"), sql: [PUT("1/new")] },
  "createSignedUploadUrl with upsert": {
    call: (client) => main(client).createSignedUploadUrl(FILE, { upsert: true }),
    sql: [REPLACE],
  },
  move: {
    call: (client) => main(client).move(FILE, "1/moved"),
    sql: [READ, `update storage.objects set name = '1/moved' where bucket_id = 'main' and name = '${FILE}'`],
  },
  "move to another bucket": {
    call: (client) => main(client).move(FILE, "1/moved", { destinationBucket: "spare" }),
    sql: [READ, `update storage.objects set bucket_id = 'spare' where bucket_id = 'main' and name = '${FILE}'`],
  },
  copy: { call: (client) => main(client).copy(FILE, "1/copy"), sql: [READ, PUT("1/copy")] },
  remove: {
    call: async (client) => ((await main(client).remove([FILE])).data?.length ?? 0) > 0,
    sql: [DELETE],
  },
  getBucket: { call: (client) => client.storage.getBucket("main"), sql: [BUCKET("main")] },
  listBuckets: {
    call: async (client) => (await client.storage.listBuckets()).data!.length > 0,
    sql: ["select from storage.buckets"],
  },
  createBucket: {
    call: (client) => client.storage.createBucket("new"),
    sql: ["insert into storage.buckets (id, name) values ('new', 'new')"],
  },
  updateBucket: {
    call: (client) => client.storage.updateBucket("main", { public: false }),
    sql: [BUCKET("main"), "update storage.buckets set public = false where id = 'main'"],
  },
  deleteBucket: {
    call: (client) => client.storage.deleteBucket("spare"),
    sql: [BUCKET("spare"), "delete from storage.buckets where id = 'spare'"],
  },
};

type ForeignMethod = {
  readonly call: (client: s3.S3Client, token: string) => Promise<unknown>;
  readonly sql: readonly string[];
};

const OF_MAIN = { Bucket: "main", Key: FILE };
const NEW_OF_MAIN = { Bucket: "main", Key: "1/new" };
const COPY = { Bucket: "main", Key: "1/copy", CopySource: `main/${FILE}` };

async function rowCount(text: string): Promise<number> {
  return (await owner.query(text)).rowCount!;
}

/** The object is still there. */
async function expectNone(text: string): Promise<void> {
  if ((await rowCount(text)) > 0) throw new Error("left");
}

async function expectSome(found: readonly unknown[] | undefined): Promise<void> {
  if (!found?.length) throw new Error("nothing is listed");
}

async function fetchOk(url: string, init: RequestInit = {}): Promise<Response> {
  const response = await fetch(url, init);
  if (!response.ok) throw new Error(`${response.status}`);
  return response;
}

/** Each call is fulfilled if the caller may make it. */
const FOREIGN_METHODS: Readonly<Record<string, ForeignMethod>> = {
  "S3 GetObject": { call: (client) => client.send(new s3.GetObjectCommand(OF_MAIN)), sql: [READ] },
  "S3 HeadObject": { call: (client) => client.send(new s3.HeadObjectCommand(OF_MAIN)), sql: [READ] },
  "S3 ListObjects": {
    call: async (client) => expectSome((await client.send(new s3.ListObjectsCommand({ Bucket: "main" }))).Contents),
    sql: [READ],
  },
  "S3 ListObjectsV2": {
    call: async (client) => expectSome((await client.send(new s3.ListObjectsV2Command({ Bucket: "main" }))).Contents),
    sql: [READ],
  },
  "S3 PutObject": {
    call: (client) => client.send(new s3.PutObjectCommand({ ...NEW_OF_MAIN, Body: "x" })),
    sql: [PUT_OR_REPLACE("1/new")],
  },
  "S3 PutObject of a new one": {
    call: (client) => client.send(new s3.PutObjectCommand({ ...NEW_OF_MAIN, Body: "x", IfNoneMatch: "*" })),
    sql: [PUT("1/new")],
  },
  "S3 PutObject of one that is there": {
    call: (client) => client.send(new s3.PutObjectCommand({ ...OF_MAIN, Body: "x" })),
    sql: [REPLACE],
  },
  "S3 CopyObject": {
    call: (client) => client.send(new s3.CopyObjectCommand(COPY)),
    sql: [READ, PUT_OR_REPLACE("1/copy")],
  },
  "S3 DeleteObject": {
    call: async (client) => {
      await client.send(new s3.DeleteObjectCommand(OF_MAIN));
      await expectNone(READ);
    },
    sql: [DELETE],
  },
  "S3 DeleteObjects": {
    call: async (client) => {
      await client.send(new s3.DeleteObjectsCommand({ Bucket: "main", Delete: { Objects: [{ Key: FILE }] } }));
      await expectNone(READ);
    },
    sql: [DELETE],
  },
  "S3 CreateMultipartUpload": {
    call: (client) => client.send(new s3.CreateMultipartUploadCommand(NEW_OF_MAIN)),
    sql: [PUT_OR_REPLACE("1/new")],
  },
  "S3 UploadPart": {
    call: async (client) => {
      // The upload was begun while nothing was refused.
      const { rows } = await owner.query("select id from content_service.unfinished_uploads where name = '1/new'");
      if (rows.length === 0) throw new Error("not begun");
      const part = { ...NEW_OF_MAIN, UploadId: rows[0].id as string, PartNumber: 1, Body: "x" };
      await client.send(new s3.UploadPartCommand(part));
    },
    sql: [PUT_OR_REPLACE("1/new")],
  },
  "S3 presigned GET": {
    call: async (client) => fetchOk(await getSignedUrl(client, new s3.GetObjectCommand(OF_MAIN))),
    sql: [READ],
  },
  "S3 presigned PUT": {
    call: async (client) =>
      fetchOk(await getSignedUrl(client, new s3.PutObjectCommand(NEW_OF_MAIN)), { method: "PUT", body: "x" }),
    sql: [PUT_OR_REPLACE("1/new")],
  },
  "S3 ListBuckets": {
    call: async (client) => expectSome((await client.send(new s3.ListBucketsCommand({}))).Buckets),
    sql: ["select from storage.buckets"],
  },
  "S3 HeadBucket": {
    call: (client) => client.send(new s3.HeadBucketCommand({ Bucket: "main" })),
    sql: [BUCKET("main")],
  },
  "S3 CreateBucket": {
    call: (client) => client.send(new s3.CreateBucketCommand({ Bucket: "new" })),
    sql: ["insert into storage.buckets (id, name) values ('new', 'new')"],
  },
  "S3 DeleteBucket": {
    call: (client) => client.send(new s3.DeleteBucketCommand({ Bucket: "spare" })),
    sql: [BUCKET("spare"), "delete from storage.buckets where id = 'spare'"],
  },
  TUS: { call: (_, token) => uploadByTus(token, "1/new", {}), sql: [PUT("1/new")] },
  "TUS with upsert": { call: (_, token) => uploadByTus(token, FILE, { "x-upsert": "true" }), sql: [REPLACE] },
};

/** Begins an upload, and sends all. */
async function uploadByTus(token: string, name: string, more: Readonly<Record<string, string>>): Promise<void> {
  const metadata = Object.entries({ bucketName: "main", objectName: name, contentType: "text/plain" });
  await fetchOk(`${service.url}/storage/v1/upload/resumable`, {
    method: "POST",
    headers: {
      authorization: `Bearer ${token}`,
      "tus-resumable": "1.0.0",
      "upload-length": "1",
      "content-type": "application/offset+octet-stream",
      "upload-metadata": metadata.map(([key, value]) => `${key} ${Buffer.from(value).toString("base64")}`).join(","),
      ...more,
    },
    body: "x",
  });
}

let operator: SupabaseClient;
let picture: Buffer;

const folder = useFolder("matrix-");
const database = useDatabase();
const owner = useClient(database.ownerUrl);
const service = useService({ database, settings: { STORAGE_DIR: folder } });
beforeAll(async () => {
  operator = clientOf({ role: "service_role" });
  picture = await sharp({ create: { width: 4, height: 4, channels: 3, background: "red" } })
    .png()
    .toBuffer();
});

function clientOf(claims: Claims): SupabaseClient {
  return createClient(service.url, jwt.sign(claims, SECRET));
}

/** Returns every method for the owner of the file, whom most policies let do something, and others for each policy and other caller. */
function methodsOf<Called>(all: Readonly<Record<string, Called>>, caller: string, policies: string) {
  const methods = Object.entries(all);
  if (caller === "owner") return methods;
  const first = Object.keys(CALLERS).indexOf(caller) + Object.keys(POLICIES).indexOf(policies);
  return shareOf([...methods.slice(first), ...methods.slice(0, first)]);
}

/** The rows that were prepared last. While they are unchanged they need no second preparation: most methods read, or are refused. */
let prepared = "";

async function storedRows(): Promise<string> {
  const { rows } = await owner.query(`select concat(
    (select json_agg(bucket order by id) from storage.buckets as bucket),
    (select json_agg(object order by id) from storage.objects as object),
    (select json_agg(upload order by id) from content_service.unfinished_uploads as upload)) as stored`);
  return rows[0].stored;
}

/** Leaves one file of the first user in one of two buckets. */
async function prepare(): Promise<void> {
  if (prepared !== "" && prepared === (await storedRows())) return;
  await owner.query(`
    delete from storage.objects;
    delete from storage.buckets;
    insert into storage.buckets (id, name) values ('main', 'main'), ('spare', 'spare')`);
  expect((await main(operator).upload(FILE, picture, { contentType: "image/png" })).error).toBeNull();
  prepared = await storedRows();
}

async function setPolicies(policies: readonly string[]): Promise<void> {
  const { rows } = await owner.query(`
    select format('drop policy %I on storage.%I', policyname, tablename) as text from pg_policies
    where schemaname = 'storage' and policyname like 'matrix %'`);
  for (const { text } of rows) await owner.query(text);
  for (const [index, policy] of policies.entries()) await owner.query(`create policy "matrix ${index}" ${policy}`);
}

/** True if the role may run the statements, and each affects a row. All are rolled back. */
async function allowsInSql({ role, ...claims }: Claims, statements: readonly string[]): Promise<boolean> {
  await owner.query("begin");
  try {
    await owner.query("select set_config('request.jwt.claims', $1, true)", [JSON.stringify({ role, ...claims })]);
    await owner.query(`set local role ${role}`);
    for (const text of statements) if ((await owner.query(text)).rowCount === 0) return false;
    return true;
  } catch (error) {
    // 42501: insufficient_privilege, which a policy raises too.
    if ((error as pg.DatabaseError).code === "42501") return false;
    throw error;
  } finally {
    await owner.query("rollback");
  }
}

function s3ClientOf(token: string): s3.S3Client {
  return new s3.S3Client({
    ...{ endpoint: `${service.url}/storage/v1/s3`, region: "x", forcePathStyle: true, maxAttempts: 1 },
    credentials: { accessKeyId: "x", secretAccessKey: token, sessionToken: token },
  });
}

describe.each(Object.entries(POLICIES))("%s", (name, policies) => {
  test.each(Object.entries(CALLERS))("%s, by S3 and TUS", async (caller, claims) => {
    await setPolicies(policies);
    const token = jwt.sign(claims, SECRET);
    const client = s3ClientOf(token);
    const inSql: Record<string, boolean> = {};
    const byMethod: Record<string, boolean> = {};
    for (const [method, { call, sql }] of methodsOf(FOREIGN_METHODS, caller, name)) {
      await prepare();
      if (method === "S3 UploadPart") await beginAs(claims, client);
      inSql[method] = await allowsInSql(claims, sql);
      byMethod[method] = await call(client, token).then(
        () => true,
        () => false,
      );
    }
    expect(byMethod).toEqual(inSql);
    client.destroy();
  });

  test.each(Object.entries(CALLERS))("%s", async (caller, claims) => {
    await setPolicies(policies);
    const client = clientOf(claims);
    const inSql: Record<string, boolean> = {};
    const byMethod: Record<string, boolean> = {};
    for (const [method, { call, sql }] of methodsOf(METHODS, caller, name)) {
      await prepare();
      inSql[method] = await allowsInSql(claims, sql);
      const result = await call(client);
      byMethod[method] = typeof result === "boolean" ? result : result.error === null;
    }
    expect(byMethod).toEqual(inSql);
  });
});

/** A policy may end between two requests of an upload: it is begun with one that lets all. */
async function beginAs({ role }: Claims, client: s3.S3Client): Promise<void> {
  await owner.query(`create policy "matrix all" on storage.objects to ${role} using (true) with check (true)`);
  try {
    await client.send(new s3.CreateMultipartUploadCommand(NEW_OF_MAIN));
  } finally {
    await owner.query('drop policy "matrix all" on storage.objects');
  }
}

test("a bucket is emptied of what its caller may delete in SQL", async () => {
  await setPolicies([
    ...POLICIES["own files are the user's"]!,
    "on storage.objects for select to authenticated using (true)",
  ]);
  for (const claims of Object.values(CALLERS)) {
    await prepare();
    await main(operator).upload("2/other", "x");
    const seesBucket = await allowsInSql(claims, [BUCKET("main")]);
    const left: string[] = [];
    for (const name of [FILE, "2/other"]) {
      const remove = `delete from storage.objects where name = '${name}'`;
      if (!seesBucket || !(await allowsInSql(claims, [remove]))) left.push(name);
    }
    expect((await clientOf(claims).storage.emptyBucket("main")).error === null).toBe(seesBucket);
    const { rows } = await owner.query('select name from storage.objects order by name collate "C"');
    expect([claims, rows.map(({ name }) => name)]).toEqual([claims, left]);
  }
});
