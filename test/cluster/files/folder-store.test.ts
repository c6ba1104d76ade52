import { createHash } from "node:crypto";
import { mkdtemp, readdir, readlink, rm, truncate, utimes, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { buffer } from "node:stream/consumers";
import { afterEach, beforeEach, expect, test } from "vitest";
import { ContentTooLarge, type FileChunks, type FileStore, makeFolderStore } from "../../../cluster/files/index.ts";

let folder: string;
let store: FileStore;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "files-"));
  store = makeFolderStore(folder);
});
afterEach(() => rm(folder, { recursive: true }));

async function* chunksOf(...chunks: (string | Buffer)[]): AsyncIterable<Buffer> {
  for (const chunk of chunks) yield Buffer.from(chunk);
}

async function save(content: Buffer): Promise<string> {
  const draft = await store.draft(chunksOf(content), content.length);
  await draft.publish();
  await draft.discard();
  return draft.hash;
}

/** Returns the files that this process has open. */
async function openFiles(): Promise<string[]> {
  const handles = await readdir("/proc/self/fd");
  return Promise.all(handles.map((handle) => readlink(`/proc/self/fd/${handle}`).catch(() => "")));
}

async function readChunks(hash: string, start = 0): Promise<Buffer> {
  const file = (await store.open(hash))!;
  const content = await file.readChunks({ start, end: file.bytes - 1 });
  if (Buffer.isBuffer(content)) return content;
  const copies: Buffer[] = [];
  for await (const { data, release } of content) {
    copies.push(Buffer.from(data));
    release();
  }
  return Buffer.concat(copies);
}

async function readAll(hash: string, start = 0, end?: number): Promise<Buffer> {
  const file = (await store.open(hash))!;
  const content = await file.read({ start, end: end ?? file.bytes - 1 });
  return content instanceof Readable ? buffer(content) : content;
}

test.each([0, 1, 65_536, 65_537, 3_000_000])(
  "a content of %i bytes is read as it was written, under its digest",
  async (bytes) => {
    const content = Buffer.alloc(bytes, "some content ");
    const hash = await save(content);
    expect(hash).toBe(createHash("sha256").update(content).digest("hex"));
    expect((await readAll(hash)).equals(content)).toBe(true);
    expect((await readChunks(hash)).equals(content)).toBe(true);
    expect((await readChunks(hash, Math.floor(bytes / 2))).equals(content.subarray(Math.floor(bytes / 2)))).toBe(true);
  },
);

test("a chunk is overwritten only after it is released", async () => {
  const [a, b] = [await save(Buffer.alloc(1_000_000, "a")), await save(Buffer.alloc(3_000_000, "b"))];
  const file = (await store.open(a))!;
  const chunks = (await file.readChunks({ start: 0, end: file.bytes - 1 })) as FileChunks;
  const held = await Array.fromAsync(chunks);
  await readChunks(b);
  expect(Buffer.concat(held.map(({ data }) => data)).equals(Buffer.alloc(1_000_000, "a"))).toBe(true);
  for (const { release } of held) release();
  await readChunks(b);
  expect(held.map(({ data }) => String(data.subarray(0, 1)))).toContain("b");
});

test("chunks that nobody reads to the end leave no open file", async () => {
  const hash = await save(Buffer.alloc(1_000_000));
  const isOpen = async () => (await openFiles()).some((name) => name.endsWith(hash));
  const begin = async () => (await (await store.open(hash))!.readChunks({ start: 0, end: 999_999 })) as FileChunks;
  const [unread, begun] = [await begin(), await begin()];
  await begun.next();
  expect(await isOpen()).toBe(true);
  for (const chunks of [unread, begun]) await chunks.return!();
  expect(await isOpen()).toBe(false);
  expect(await begun.next()).toEqual({ done: true, value: undefined });
});

test("a file that became shorter is an error, and is closed", async () => {
  const hash = await save(Buffer.alloc(1_000_000));
  await truncate(join(folder, hash.slice(0, 2), hash), 300_000);
  await expect(
    store.open(hash).then(async (file) => {
      const chunks = (await file!.readChunks({ start: 0, end: 999_999 })) as FileChunks;
      for await (const { release } of chunks) release();
    }),
  ).rejects.toThrow("shorter");
  expect((await openFiles()).some((name) => name.endsWith(hash))).toBe(false);
});

test("a part is read without the rest", async () => {
  const hash = await save(Buffer.from("0123456789"));
  expect(String(await readAll(hash, 2, 4))).toBe("234");
});

test("a draft has no name until it is published, and leaves nothing when it is discarded", async () => {
  const draft = await store.draft(chunksOf("ab", "c"), 3);
  expect(await store.open(draft.hash)).toBeNull();
  await draft.discard();
  expect(await readdir(join(folder, "drafts"))).toEqual([]);
});

test("a content that is too large, or breaks off, leaves nothing", async () => {
  await expect(store.draft(chunksOf("abc", "d"), 3)).rejects.toBeInstanceOf(ContentTooLarge);
  const broken = async function* () {
    yield Buffer.from("a");
    throw new Error("broken off");
  };
  await expect(store.draft(broken(), 3)).rejects.toThrow("broken off");
  expect(await readdir(join(folder, "drafts"))).toEqual([]);
});

test("the names of all contents are listed, and of no drafts", async () => {
  await store.draft(chunksOf("a draft"), 10);
  const hashes = [await save(Buffer.from("a")), await save(Buffer.from("b"))];
  expect((await Array.fromAsync(store.list())).flat().sort()).toEqual(hashes.sort());
  await store.remove([hashes[0]!, "f".repeat(64)]);
  expect((await Array.fromAsync(store.list())).flat()).toEqual([hashes[1]]);
});

test("drafts of processes that ended are removed, those of others are not", async () => {
  await store.draft(chunksOf("young"), 10);
  const old = join(folder, "drafts", "old");
  await writeFile(old, "old");
  await utimes(old, new Date(0), new Date(0));
  await store.removeDrafts(60_000);
  expect(await readdir(join(folder, "drafts"))).toHaveLength(1);
});

test("an empty folder has no contents", async () => {
  expect(await Array.fromAsync(makeFolderStore(join(folder, "none")).list())).toEqual([]);
});
