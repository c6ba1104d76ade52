import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { mkdir, open, opendir, readFile, rename, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { UnfinishedUploads } from "./file-store.ts";
import { ifPresent } from "./if-present.ts";

const NAME = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** Publishes a file of this folder as a content. */
type Publish = (path: string, hash: string) => Promise<void>;

export function makeUnfinishedUploads<About>(folder: string, publish: Publish): UnfinishedUploads<About> {
  const bytesOf = (id: string) => join(folder, id);
  const aboutOf = (id: string) => join(folder, `${id}.json`);
  const write = async (id: string, about: About) => {
    // Read by another request at the same time, it is whole.
    await writeFile(`${aboutOf(id)}.new`, JSON.stringify(about), { mode: 0o600 });
    await rename(`${aboutOf(id)}.new`, aboutOf(id));
  };
  const remove = async (id: string) => {
    for (const path of [bytesOf(id), aboutOf(id)]) await rm(path, { force: true });
  };
  return {
    async create(id, about) {
      await mkdir(folder, { recursive: true });
      await (await open(bytesOf(id), "wx", 0o600)).close();
      await write(id, about);
    },
    async read(id) {
      if (!NAME.test(id)) return null;
      return ifPresent(async () => {
        const about = JSON.parse(await readFile(aboutOf(id), "utf8")) as About;
        const bytes = (await ifPresent(() => stat(bytesOf(id))))?.size ?? 0;
        return { about, bytes };
      });
    },
    replace: write,
    append: (id, offset, content) => append(bytesOf(id), offset, content),
    async finish(id) {
      const { hash, bytes } = await readSafely(bytesOf(id));
      return { hash, bytes, publish: () => publish(bytesOf(id), hash), discard: async () => {} };
    },
    remove,
    async removeOlder(ageMs) {
      for await (const { name } of (await ifPresent(() => opendir(folder))) ?? []) {
        const about = await ifPresent(() => stat(join(folder, name)));
        if (about && about.mtimeMs < Date.now() - ageMs) await rm(join(folder, name), { force: true });
      }
    },
  };
}

async function append(path: string, offset: number, content: AsyncIterable<Buffer>): Promise<number> {
  const file = await open(path, "r+");
  let at = offset;
  try {
    for await (const chunk of content) {
      for (let written = 0; written < chunk.length; ) {
        const { bytesWritten } = await file.write(chunk, written, chunk.length - written, at);
        written += bytesWritten;
        at += bytesWritten;
      }
    }
    return at;
  } finally {
    await file.close();
  }
}

async function readSafely(path: string): Promise<{ readonly hash: string; readonly bytes: number }> {
  const file = await open(path, "r");
  try {
    await file.datasync();
  } finally {
    await file.close();
  }
  const digest = createHash("sha256");
  let bytes = 0;
  for await (const chunk of createReadStream(path, { highWaterMark: 256 * 1024 })) {
    digest.update(chunk as Buffer);
    bytes += (chunk as Buffer).length;
  }
  return { hash: digest.digest("hex"), bytes };
}
