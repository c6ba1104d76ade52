import { createHash } from "node:crypto";
import { mkdtemp, readdir, rm } from "node:fs/promises";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { buffer } from "node:stream/consumers";
import S3rver from "s3rver";
import { beforeAll, beforeEach, describe, expect, test } from "vitest";
import { ContentTooLarge, type FileStore, makeS3Store, TooManyUploads } from "../../../cluster/files/index.ts";
import type { Service } from "../../../service/wiring/service.ts";
import { cloneDatabase, type TestDatabase } from "../../database.ts";
import { useFixture, useFolder } from "../../fixture.ts";
import { serve } from "../../serve.ts";

// The same store on an S3 server that is not ours, and on /storage/v1/s3.

type Backend = { readonly endpoint: string; stop(): Promise<void> };

const KEY = { accessKeyId: "S3RVER", secretAccessKey: "S3RVER" };
const BUCKET = "contents";

async function startForeign(): Promise<Backend> {
  const directory = await mkdtemp(join(tmpdir(), "s3rver-"));
  const options = {
    port: 0,
    address: "127.0.0.1",
    silent: true,
    directory,
    configureBuckets: [{ name: BUCKET, configs: [] }],
  };
  const server = new S3rver(options);
  const { port } = await server.run();
  return {
    endpoint: `http://127.0.0.1:${port}`,
    async stop() {
      await server.close();
      await rm(directory, { recursive: true });
    },
  };
}

async function startOwn(): Promise<Backend> {
  const directory = await mkdtemp(join(tmpdir(), "own-s3-"));
  const database: TestDatabase = await cloneDatabase();
  const service: Service = await serve(database, {
    STORAGE_DIR: directory,
    S3_PROTOCOL_ACCESS_KEY_ID: KEY.accessKeyId,
    S3_PROTOCOL_ACCESS_KEY_SECRET: KEY.secretAccessKey,
  });
  const { default: pg } = await import("pg");
  const owner = new pg.Client({ connectionString: database.ownerUrl });
  await owner.connect();
  await owner.query(`insert into storage.buckets (id, name) values ('${BUCKET}', '${BUCKET}')`);
  await owner.end();
  return {
    endpoint: `${service.url}/storage/v1/s3`,
    async stop() {
      await service.stop();
      await database.drop();
      await rm(directory, { recursive: true });
    },
  };
}

describe.each([
  ["s3rver", startForeign],
  ["/storage/v1/s3", startOwn],
])("%s", (_, start) => {
  /** Each is the store of another gateway. */
  let store: FileStore;
  let other: FileStore;

  const backend = useFixture(start);
  const folder = useFolder("spool-");
  beforeAll(async () => {
    const location = { endpoint: backend.endpoint, bucket: BUCKET, region: "us-east-1", ...KEY };
    store = makeS3Store(location, join(folder, "one"));
    other = makeS3Store(location, join(folder, "other"));
  });
  beforeEach(async () => {
    for await (const hashes of store.list()) await store.remove(hashes);
  });

  async function save(content: Buffer): Promise<string> {
    const draft = await store.draft(chunksOf(content), content.length);
    await draft.publish();
    await draft.discard();
    return draft.hash;
  }

  async function readAll(hash: string, start = 0, end?: number): Promise<Buffer> {
    const file = (await other.open(hash))!;
    const content = await file.read({ start, end: end ?? file.bytes - 1 });
    return content instanceof Readable ? buffer(content) : content;
  }

  async function listed(): Promise<string[]> {
    const names: string[] = [];
    for await (const hashes of other.list()) names.push(...hashes);
    return names.sort();
  }

  test.each([0, 1, 65_537, 3_000_000])(
    "a content of %i bytes is read by another gateway as it was written",
    async (bytes) => {
      const content = Buffer.alloc(bytes, "some content ");
      const hash = await save(content);
      expect(hash).toBe(createHash("sha256").update(content).digest("hex"));
      expect((await readAll(hash)).equals(content)).toBe(true);
      expect(await listed()).toEqual([hash]);
      expect(await readdir(join(folder, "one", "drafts"))).toEqual([]);
    },
  );

  test("a part is read without the rest; what is not there is null", async () => {
    expect(String(await readAll(await save(Buffer.from("0123456789")), 2, 4))).toBe("234");
    expect(await store.open("0".repeat(64))).toBeNull();
    await store.remove(["0".repeat(64)]);
  });

  test("a content that was collected after it was written is there again when it is published", async () => {
    const draft = await store.draft(chunksOf("abc"), 3);
    await other.remove([draft.hash]);
    await draft.publish();
    await draft.discard();
    expect(String(await readAll(draft.hash))).toBe("abc");
  });

  test("a content that is too large, or breaks off, leaves nothing", async () => {
    await expect(store.draft(chunksOf("abc", "d"), 3)).rejects.toBeInstanceOf(ContentTooLarge);
    await expect(store.draft(brokenAfter("ab"), 9)).rejects.toThrow("broken");
    expect(await listed()).toEqual([]);
    expect(await readdir(join(folder, "one", "drafts"))).toEqual([]);
  });

  test("an upload goes on at another gateway where it stopped", async () => {
    const id = crypto.randomUUID();
    const [here, there] = [store.uploads<{ name: string }>(), other.uploads<{ name: string }>()];
    await here.create(id, { name: "a" });
    await expect(here.append(id, 0, brokenAfter("0123"))).rejects.toThrow("broken");
    expect(await there.read(id)).toEqual({ about: { name: "a" }, bytes: 4 });
    expect(await there.append(id, 4, chunksOf("45", "67"))).toBe(8);
    // The first gateway has received some of it, too.
    expect(await here.append(id, 6, chunksOf("6789"))).toBe(10);
    await there.replace(id, { name: "b" });
    expect(await here.read(id)).toEqual({ about: { name: "b" }, bytes: 10 });
    const draft = await here.finish(id);
    await draft.publish();
    await draft.discard();
    expect(String(await readAll(draft.hash))).toBe("0123456789");
    await here.empty(id);
    expect(await there.read(id)).toEqual({ about: { name: "b" }, bytes: 0 });
    await here.remove(id);
    expect(await there.read(id)).toBeNull();
    expect(await there.read("../contents/x")).toBeNull();
  });

  test("old uploads are deleted, young ones stay", async () => {
    const id = crypto.randomUUID();
    await store.uploads().create(id, {});
    await store.uploads().removeOlder(3_600_000);
    expect(await store.uploads().read(id)).not.toBeNull();
    await store.uploads().removeOlder(-60_000);
    expect(await store.uploads().read(id)).toBeNull();
  });

  test("a caller has a hundred unfinished uploads at most", async () => {
    const uploads = store.uploads();
    const ids = Array.from({ length: 100 }, () => uploads.newId("user 1"));
    for (const id of ids) await uploads.create(id, {});
    const begin = () => uploads.create(uploads.newId("user 1"), {});
    await expect(begin()).rejects.toBeInstanceOf(TooManyUploads);
    await uploads.create(uploads.newId("user 2"), {});
    await uploads.empty(ids[0]!);
    await begin();
    await expect(begin()).rejects.toBeInstanceOf(TooManyUploads);
    await uploads.removeOlder(-60_000);
  });

  test("failures that pass are not seen", async () => {
    const proxy = await startFlaky(backend.endpoint);
    const location = { endpoint: proxy.endpoint, bucket: BUCKET, region: "us-east-1", ...KEY };
    try {
      const flaky = makeS3Store(location, join(folder, "flaky"));
      const draft = await flaky.draft(chunksOf("through failures"), 100);
      await draft.publish();
      expect(proxy.failures()).toBeGreaterThan(0);
      expect(String(await readAll(draft.hash))).toBe("through failures");
    } finally {
      await proxy.stop();
    }
  });
});

async function* chunksOf(...chunks: (string | Buffer)[]): AsyncIterable<Buffer> {
  for (const chunk of chunks) yield Buffer.from(chunk);
}

async function* brokenAfter(text: string): AsyncIterable<Buffer> {
  yield Buffer.from(text);
  throw new Error("broken");
}

/** Answers 503 to the first attempt of each request. */
async function startFlaky(endpoint: string) {
  const seen = new Set<string>();
  const target = new URL(endpoint);
  let failures = 0;
  const server: Server = createServer(async (request, response) => {
    const body = await buffer(request);
    const name = `${request.method} ${request.url}`;
    if (!seen.has(name)) {
      seen.add(name);
      failures++;
      response.writeHead(503).end();
      return;
    }
    const headers = Object.entries(request.headers).filter(([key]) => key !== "connection");
    const {
      statusCode,
      headers: sent,
      body: answer,
    } = await (await import("undici")).request(`${target.origin}${request.url}`, {
      method: request.method as "GET",
      headers: Object.fromEntries(headers) as Record<string, string>,
      body,
    });
    response.writeHead(statusCode, sent as Record<string, string>);
    response.end(Buffer.from(await answer.arrayBuffer()));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return {
    endpoint: `http://127.0.0.1:${port}${target.pathname.replace(/\/$/, "")}`,
    failures: () => failures,
    stop: () => new Promise((resolve) => server.close(resolve)),
  };
}
