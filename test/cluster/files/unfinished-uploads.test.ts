import { createHash, randomUUID } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { expect, test } from "vitest";
import { makeFolderStore } from "../../../cluster/files/index.ts";

test("a request that still writes to an upload does not change the content that it has become", async () => {
  const folder = await mkdtemp(join(tmpdir(), "files-"));
  try {
    // Two processes, which do not know of each other's requests.
    const [slow, quick] = [makeFolderStore(folder), makeFolderStore(folder)];
    const id = randomUUID();
    await quick.uploads().create(id, {});
    const started = Promise.withResolvers<void>();
    const published = Promise.withResolvers<void>();
    async function* late() {
      yield Buffer.from("g");
      started.resolve();
      await published.promise;
      yield Buffer.from("bad!");
    }
    const writing = slow.uploads().append(id, 0, late());
    await started.promise;
    await quick.uploads().append(id, 0, Readable.from([Buffer.from("good!")]));
    const draft = await quick.uploads().finish(id);
    await draft.publish();
    await draft.discard();
    published.resolve();
    await writing;
    const content = await quick.open(draft.hash);
    const bytes = await content!.read({ start: 0, end: draft.bytes - 1 });
    expect(
      createHash("sha256")
        .update(bytes as Buffer)
        .digest("hex"),
    ).toBe(draft.hash);
  } finally {
    await rm(folder, { recursive: true });
  }
});
