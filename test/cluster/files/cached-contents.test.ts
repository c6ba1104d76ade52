import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { buffer } from "node:stream/consumers";
import { expect, test } from "vitest";
import { cacheContents } from "../../../cluster/files/cached-contents.ts";
import { type FileStore, makeFolderStore } from "../../../cluster/files/index.ts";

async function* chunksOf(content: Buffer): AsyncIterable<Buffer> {
  yield content;
}

async function save(store: FileStore, content: Buffer): Promise<string> {
  const draft = await store.draft(chunksOf(content), content.length);
  await draft.publish();
  return draft.hash;
}

async function readAll(store: FileStore, hash: string, start = 0, end?: number): Promise<Buffer> {
  const file = (await store.open(hash))!;
  const content = await file.read({ start, end: end ?? file.bytes - 1 });
  return content instanceof Readable ? buffer(content) : content;
}

test("small contents are read from memory, in whole and in part, large ones are not", async () => {
  const folder = await mkdtemp(join(tmpdir(), "files-"));
  try {
    const plain = makeFolderStore(folder);
    const store = cacheContents(plain);
    const small = Buffer.from("0123456789");
    const large = Buffer.alloc(100_000, "large");
    const hashes = await Promise.all([small, large, Buffer.alloc(0)].map((content) => save(store, content)));
    const [ofSmall, ofLarge, ofEmpty] = hashes as [string, string, string];
    for (const _time of ["first", "second"]) {
      expect(String(await readAll(store, ofSmall))).toBe("0123456789");
      expect((await readAll(store, ofLarge)).equals(large)).toBe(true);
      expect(await (await store.open(ofEmpty))!.read({ start: 0, end: -1 })).toHaveLength(0);
    }
    await plain.remove(hashes);
    expect(String(await readAll(store, ofSmall, 2, 4))).toBe("234");
    expect([await store.open(ofLarge), await store.open(ofEmpty)]).toEqual([null, null]);
  } finally {
    await rm(folder, { recursive: true });
  }
});
