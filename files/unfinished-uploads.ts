import { createReadStream } from "node:fs";
import { mkdir, open, opendir, readFile, rename, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { DraftFile, UnfinishedUploads } from "./file-store.ts";
import { ifPresent } from "./if-present.ts";

const CHUNK_BYTES = 256 * 1024;
const NAME = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

type WriteDraft = (content: AsyncIterable<Buffer>) => Promise<DraftFile>;

export function makeUnfinishedUploads<About>(folder: string, draft: WriteDraft): UnfinishedUploads<About> {
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
    finish: (id) => draft(createReadStream(bytesOf(id), { highWaterMark: CHUNK_BYTES })),
    empty: (id) => rm(bytesOf(id), { force: true }),
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
    await file.datasync();
    await file.close();
  }
}
