import { randomBytes } from "node:crypto";
import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { expect, test } from "vitest";
import { makeFolderStore, StoreFull, TooManyUploads } from "../../../cluster/files/index.ts";
import { MAY_MOUNT, mountSmallDisk, saySkipped } from "../../small-disk.ts";

const CHUNK = 1024 * 1024;
const megabytes = (count: number) => Readable.from(Array.from({ length: count }, () => randomBytes(CHUNK)));

test.skipIf(!MAY_MOUNT)("contents and unfinished uploads leave a part of the disk free", async () => {
  saySkipped("A disk that becomes full");
  await using disk = await mountSmallDisk("100m");
  const store = makeFolderStore(join(disk.folder, "files"));
  expect(await store.isSpaceScarce()).toBe(false);
  await (await store.draft(megabytes(70), 100 * CHUNK)).publish();
  expect(await store.isSpaceScarce()).toBe(false);
  const uploads = store.uploads();
  const id = uploads.newId("caller");
  await uploads.create(id, {});
  await uploads.append(id, 0, megabytes(15));
  expect(await store.isSpaceScarce()).toBe(true);
  await expect(uploads.append(id, 15 * CHUNK, megabytes(20))).rejects.toThrow(StoreFull);
  await expect(store.draft(megabytes(20), 100 * CHUNK)).rejects.toThrow(StoreFull);
  // The part of an upload that was received stays, and a draft is removed.
  expect((await uploads.read(id))!.bytes).toBeGreaterThanOrEqual(15 * CHUNK);
  expect(await readdir(join(disk.folder, "files", "drafts"))).toEqual([]);
  await uploads.remove(id);
  await expect(store.draft(megabytes(10), 100 * CHUNK).then(({ discard }) => discard())).resolves.toBeUndefined();
});

test("a caller may have so many unfinished uploads, however many begin at once", async () => {
  const folder = await mkdtemp(join(tmpdir(), "files-"));
  try {
    const uploads = makeFolderStore(folder).uploads();
    const begin = (caller: string) => uploads.create(uploads.newId(caller), {});
    const begun = await Promise.allSettled(Array.from({ length: 150 }, () => begin("one")));
    const refused = begun.filter(({ status }) => status === "rejected");
    expect(refused.length).toBeGreaterThanOrEqual(50);
    for (const { reason } of refused as PromiseRejectedResult[]) expect(reason).toBeInstanceOf(TooManyUploads);
    await begin("another");
    expect(uploads.newId("one")).not.toBe(uploads.newId("one"));
    const complete = uploads.newId("third");
    for (let n = 0; n < 110; n++) {
      const id = uploads.newId("third");
      await uploads.create(id, {});
      await uploads.empty(id);
    }
    await uploads.create(complete, {});
    await uploads.removeOlder(-1);
    expect(await uploads.read(complete)).toBeNull();
    await uploads.removeOlder(-1);
    expect(await readdir(join(folder, "uploads"))).toEqual([]);
  } finally {
    await rm(folder, { recursive: true });
  }
});
