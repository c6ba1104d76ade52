import { randomBytes } from "node:crypto";
import { readdir, utimes } from "node:fs/promises";
import { join } from "node:path";
import { Readable } from "node:stream";
import { createClient, type SupabaseClient } from "@supabase/supabase-js";
import jwt from "jsonwebtoken";
import { type DetailedError, Upload, type UploadOptions } from "tus-js-client";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { makeFolderStore } from "../../../cluster/files/index.ts";
import { withClient } from "../../../postgres/client/with-client.ts";
import type { Service } from "../../../service/wiring/service.ts";
import { useDatabase } from "../../database.ts";
import { useFolder } from "../../fixture.ts";
import { SECRET } from "../../secret.ts";
import { serve } from "../../serve.ts";

const CONTENT = randomBytes(300_000);
const CHUNK = 100_000;
const DAY_MS = 24 * 3_600_000;

let service: Service;
let ada: SupabaseClient;

const tokens = {
  ada: jwt.sign({ role: "authenticated", sub: "1" }, SECRET),
  bob: jwt.sign({ role: "authenticated", sub: "2" }, SECRET),
  stranger: jwt.sign({ role: "anon" }, SECRET),
};

const start = async () => {
  service = await serve(database, { STORAGE_DIR: folder });
  ada = createClient(service.url, tokens.ada);
};

const folder = useFolder("files-");
const database = useDatabase({
  sql: `
    insert into storage.buckets (id, name, file_size_limit, allowed_mime_types)
      values ('notes', 'notes', null, null), ('small', 'small', 1000, '{text/plain}');
    create policy "own folder" on storage.objects to authenticated
      using ((storage.foldername(name))[1] = (select auth.uid())::text)
      with check ((storage.foldername(name))[1] = (select auth.uid())::text)`,
});
beforeAll(() => start());
afterAll(() => service.stop());
beforeEach(() => withClient(database.ownerUrl, (owner) => owner.query("delete from storage.objects")));

type Sent = {
  readonly token?: string;
  readonly bucket?: string;
  readonly name?: string;
  readonly content?: Buffer;
  readonly type?: string;
  readonly options?: Partial<UploadOptions>;
  readonly path?: string;
};

/** Sends the content in parts; resolves when it is complete, or with the error that the client reports. */
async function send(sent: Sent): Promise<{ readonly upload: Upload; readonly error: DetailedError | null }> {
  const { token = tokens.ada, bucket = "notes", name = "1/large.bin", content = CONTENT, options = {} } = sent;
  const ended = Promise.withResolvers<DetailedError | null>();
  const { headers, ...others } = options;
  const upload = new Upload(content, {
    endpoint: `${service.url}/storage/v1${sent.path ?? "/upload/resumable"}`,
    headers: { authorization: `Bearer ${token}`, ...headers },
    metadata: {
      bucketName: bucket,
      objectName: name,
      contentType: sent.type ?? "application/octet-stream",
      cacheControl: "3600",
    },
    chunkSize: CHUNK,
    retryDelays: [],
    onError: (error) => ended.resolve(error as DetailedError),
    onSuccess: () => ended.resolve(null),
    ...others,
  });
  upload.start();
  return { error: await ended.promise, upload };
}

/** Sends the first part only; returns the address to go on at. */
async function begin(): Promise<string> {
  const stopped = Promise.withResolvers<string>();
  const upload: Upload = new Upload(CONTENT, {
    endpoint: `${service.url}/storage/v1/upload/resumable`,
    headers: { authorization: `Bearer ${tokens.ada}` },
    metadata: { bucketName: "notes", objectName: "1/large.bin" },
    chunkSize: CHUNK,
    retryDelays: [],
    onError: (error) => stopped.reject(error),
    onChunkComplete: () => void upload.abort().then(() => stopped.resolve(upload.url!)),
  });
  upload.start();
  return stopped.promise;
}

const statusOf = (error: DetailedError | null) => error?.originalResponse?.getStatus() ?? null;

const head = (url: string, token = tokens.ada) =>
  fetch(url, { method: "HEAD", headers: { authorization: `Bearer ${token}`, "tus-resumable": "1.0.0" } });

async function stored(name = "1/large.bin"): Promise<Buffer | null> {
  const { data } = await ada.storage.from("notes").download(name);
  return data && Buffer.from(await data.arrayBuffer());
}

describe("tus-js-client", () => {
  test("uploads a file in parts, which is an object as any other", async () => {
    const { error } = await send({ type: "image/png" });
    expect(error).toBeNull();
    expect((await stored())!.equals(CONTENT)).toBe(true);
    const { data } = await ada.storage.from("notes").info("1/large.bin");
    expect(data).toMatchObject({ size: CONTENT.length, contentType: "image/png", cacheControl: "max-age=3600" });
  });

  test("goes on where it stopped, also after a restart of the service", async () => {
    const url = await begin();
    expect((await head(url)).headers.get("upload-offset")).toBe(String(CHUNK));
    const former = new URL(url);
    await service.stop();
    await start();
    const moved = new URL(former.pathname, service.url).href;
    const offsets: number[] = [];
    const onChunkComplete = (_: number, accepted: number) => offsets.push(accepted);
    const { error } = await send({ options: { uploadUrl: moved, onChunkComplete } });
    expect(error).toBeNull();
    expect(offsets).toEqual([2 * CHUNK, 3 * CHUNK]);
    expect((await stored())!.equals(CONTENT)).toBe(true);
  });

  test("keeps what was received before the connection broke", async () => {
    const url = await begin();
    const broken = new ReadableStream({
      pull(controller) {
        controller.enqueue(CONTENT.subarray(CHUNK, CHUNK + 50_000));
        controller.error(new Error("broken"));
      },
    });
    const patch = { "upload-offset": String(CHUNK), "content-type": "application/offset+octet-stream" };
    const headers = { authorization: `Bearer ${tokens.ada}`, "tus-resumable": "1.0.0", ...patch };
    await expect(
      fetch(url, { method: "PATCH", headers, body: broken, duplex: "half" } as RequestInit),
    ).rejects.toThrow();
    const { error } = await send({ options: { uploadUrl: url } });
    expect(error).toBeNull();
    expect((await stored())!.equals(CONTENT)).toBe(true);
  });

  test("finds an upload complete whose last response was lost", async () => {
    const { upload } = await send({});
    const { error } = await send({ options: { uploadUrl: upload.url! } });
    expect(error).toBeNull();
    expect((await head(upload.url!)).headers.get("upload-offset")).toBe(String(CONTENT.length));
  });

  test("sends the content with the creation, or without knowing its length before", async () => {
    const options = { uploadDataDuringCreation: true, chunkSize: Number.POSITIVE_INFINITY };
    expect((await send({ name: "1/at-once.bin", options })).error).toBeNull();
    expect((await send({ name: "1/deferred.bin", options: { uploadLengthDeferred: true } })).error).toBeNull();
    for (const name of ["1/at-once.bin", "1/deferred.bin"]) expect((await stored(name))!.equals(CONTENT)).toBe(true);
  });

  test("uploads an empty file", async () => {
    expect((await send({ name: "1/empty", content: Buffer.alloc(0) })).error).toBeNull();
    expect(await stored("1/empty")).toEqual(Buffer.alloc(0));
  });

  test("ends an upload, whose bytes go", async () => {
    const url = await begin();
    await Upload.terminate(url, { headers: { authorization: `Bearer ${tokens.ada}` } });
    expect((await head(url)).status).toBe(404);
    const left = await readdir(join(folder, "uploads"), { recursive: true });
    expect(left.filter((path) => path.includes(url.split("/").at(-1)!))).toEqual([]);
  });

  test("replaces an object if it asks for that", async () => {
    expect((await send({})).error).toBeNull();
    expect(statusOf((await send({})).error)).toBe(409);
    const changed = randomBytes(1000);
    const { error } = await send({ content: changed, options: { headers: { "x-upsert": "true" } } });
    expect(error).toBeNull();
    expect((await stored())!.equals(changed)).toBe(true);
  });

  test("uploads to a signed address, without a token of a user, and to no other", async () => {
    const { data } = await ada.storage.from("notes").createSignedUploadUrl("1/signed.bin");
    const signed = { token: tokens.stranger, path: "/upload/resumable/sign" };
    const options = { headers: { "x-signature": data!.token } };
    expect((await send({ ...signed, name: "1/signed.bin", options })).error).toBeNull();
    expect((await stored("1/signed.bin"))!.equals(CONTENT)).toBe(true);
    expect(statusOf((await send({ ...signed, name: "1/other.bin", options })).error)).toBe(400);
    expect(statusOf((await send({ ...signed, name: "1/signed.bin" })).error)).toBe(400);
  });
});

describe("an upload whose bytes have all arrived", () => {
  test("is not reported complete before its object is, and ends with the object", async () => {
    const uploadUrl = await begin();
    const uploads = makeFolderStore(folder).uploads();
    // A process that ends before it commits the row leaves this.
    await uploads.append(uploadUrl.split("/").at(-1)!, CHUNK, Readable.from([CONTENT.subarray(CHUNK)]));
    expect(Number((await head(uploadUrl)).headers.get("upload-offset"))).toBeLessThan(CONTENT.length);
    expect((await send({ options: { uploadUrl } })).error).toBeNull();
    expect((await stored())!.equals(CONTENT)).toBe(true);
  });

  test("goes on after a commit that failed", async () => {
    await withClient(database.ownerUrl, (owner) =>
      owner.query(`
        create function public.fail() returns trigger language plpgsql as $$ begin raise 'no commit' using errcode = 'XX000'; end $$;
        create constraint trigger fails after insert on storage.objects deferrable initially deferred
          for each row execute function public.fail()`),
    );
    const { upload, error } = await send({});
    expect(statusOf(error)).toBe(500);
    await withClient(database.ownerUrl, (owner) => owner.query("drop function public.fail() cascade"));
    expect((await send({ options: { uploadUrl: upload.url } })).error).toBeNull();
    expect((await stored())!.equals(CONTENT)).toBe(true);
  });
});

describe("policies and limits decide before a byte is received", () => {
  test.each<[string, Sent, number]>([
    ["a folder of somebody else", { token: tokens.bob }, 403],
    ["a caller without a policy", { token: tokens.stranger }, 403],
    ["a bucket that does not exist", { bucket: "none" }, 404],
    ["a name that leads elsewhere", { name: "1/../2/x" }, 400],
    ["a type that the bucket refuses", { bucket: "small", content: Buffer.alloc(10) }, 415],
    ["a file that is too large", { bucket: "small", type: "text/plain" }, 413],
    ["more than the placeholder of a folder", { name: "1/.emptyFolderPlaceholder" }, 413],
  ])("%s", async (_, sent, status) => {
    const before = await readdir(join(folder, "uploads")).catch(() => []);
    const { error } = await send(sent);
    expect(statusOf(error)).toBe(status);
    expect(await readdir(join(folder, "uploads")).catch(() => [])).toEqual(before);
  });
});

describe("an unfinished upload", () => {
  test("is nobody's but of who has begun it", async () => {
    const url = await begin();
    for (const token of [tokens.bob, tokens.stranger]) {
      expect((await head(url, token)).status).toBe(404);
      expect(statusOf((await send({ token, options: { uploadUrl: url, endpoint: null } })).error)).toBe(404);
      await expect(Upload.terminate(url, { headers: { authorization: `Bearer ${token}` } })).rejects.toThrow();
    }
    expect((await head(url)).headers.get("upload-offset")).toBe(String(CHUNK));
  });

  test("ends when policies no longer let its caller", async () => {
    const url = await begin();
    const givePolicyTo = (role: string) =>
      withClient(database.ownerUrl, (owner) => owner.query(`alter policy "own folder" on storage.objects to ${role}`));
    await givePolicyTo("admin");
    try {
      const { error } = await send({ options: { uploadUrl: url, endpoint: null } });
      expect(statusOf(error)).toBe(403);
    } finally {
      await givePolicyTo("authenticated");
    }
  });

  test("is finished once, although its last part is sent twice at once", async () => {
    const upload = await begin();
    const patch = (from: number, to: number) =>
      fetch(upload, {
        method: "PATCH",
        headers: {
          authorization: `Bearer ${tokens.ada}`,
          "tus-resumable": "1.0.0",
          "upload-offset": String(from),
          "content-type": "application/offset+octet-stream",
        },
        body: CONTENT.subarray(from, to),
      });
    const last = CONTENT.length - 1;
    expect((await patch(CHUNK, last)).status).toBe(204);
    await Promise.all([1, 2].map(() => patch(last, CONTENT.length)));
    const after = await head(upload);
    expect([after.status, after.headers.get("upload-offset")]).toEqual([200, String(CONTENT.length)]);
    expect((await stored())!.equals(CONTENT)).toBe(true);
  });

  test("is kept while it goes on, however long ago it began", async () => {
    const url = await begin();
    const id = new URL(url).pathname.split("/").at(-1)!;
    const yesterday = new Date(Date.now() - 2 * DAY_MS);
    await utimes(join(folder, "uploads", id.slice(0, 13), `${id}.json`), yesterday, yesterday);
    await makeFolderStore(folder).uploads().removeOlder(DAY_MS);
    expect((await head(url)).status).toBe(200);
  });

  test("is deleted after a day", async () => {
    const url = await begin();
    const id = new URL(url).pathname.split("/").at(-1)!;
    const yesterday = new Date(Date.now() - 2 * DAY_MS);
    const kept = join(folder, "uploads", id.slice(0, 13));
    for (const path of [join(kept, id), join(kept, `${id}.json`), kept]) await utimes(path, yesterday, yesterday);
    await makeFolderStore(folder).uploads().removeOlder(DAY_MS);
    expect((await head(url)).status).toBe(404);
  });

  test("has an address that names no other file", async () => {
    const base = `${service.url}/storage/v1/upload/resumable`;
    for (const id of ["..%2f..%2fetc%2fpasswd", "%00", "x", ".", `${"a".repeat(300)}`]) {
      expect([400, 404, 405]).toContain((await head(`${base}/${id}`)).status);
    }
  });
});

test("pages of other sites may read the headers that the protocol needs", async () => {
  const headers = {
    authorization: `Bearer ${tokens.ada}`,
    "tus-resumable": "1.0.0",
    origin: "https://app.example.org",
  };
  const metadata = `bucketName ${btoa("notes")},objectName ${btoa("1/x")}`;
  const response = await fetch(`${service.url}/storage/v1/upload/resumable`, {
    method: "POST",
    headers: { ...headers, "upload-length": "10", "upload-metadata": metadata },
  });
  expect(response.status).toBe(201);
  expect(response.headers.get("location")).toMatch(/^\/storage\/v1\/upload\/resumable\/[0-9a-f-]{36}$/);
  expect(response.headers.get("access-control-expose-headers")).toMatch(/Upload-Offset/);
  expect(response.headers.get("access-control-allow-origin")).toBe("*");
  expect(response.headers.get("upload-expires")).not.toBeNull();
});

test.each(["", "/", "/some-id", "/sign", "/sign/some-id"])(
  "what the server can do is told without a token, at /upload/resumable%s",
  async (path) => {
    for (const headers of [{}, { authorization: "Bearer not-a-token" }]) {
      const response = await fetch(`${service.url}/storage/v1/upload/resumable${path}`, { method: "OPTIONS", headers });
      expect(response.status).toBe(204);
      expect(Object.fromEntries(response.headers)).toMatchObject({
        "tus-resumable": "1.0.0",
        "tus-version": "1.0.0",
        "tus-extension": expect.stringContaining("creation"),
        "tus-max-size": String(50 * 1024 * 1024),
      });
    }
  },
);

test("a preflight of a browser is answered, too", async () => {
  const response = await fetch(`${service.url}/storage/v1/upload/resumable`, {
    method: "OPTIONS",
    headers: {
      origin: "https://app.example.org",
      "access-control-request-method": "POST",
      "access-control-request-headers": "authorization,tus-resumable,upload-length,upload-metadata,x-upsert",
    },
  });
  expect([response.ok, response.headers.get("access-control-allow-origin")]).toEqual([true, "*"]);
  expect(response.headers.get("access-control-allow-headers")).toContain("tus-resumable");
});
