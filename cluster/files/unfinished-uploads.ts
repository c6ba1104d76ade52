import { createHash, randomUUID } from "node:crypto";
import { createReadStream } from "node:fs";
import { mkdir, open, opendir, readdir, readFile, rename, rm, rmdir, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type DraftFile, TooManyUploads, type UnfinishedUploads } from "./file-store.ts";
import { makeSpaceCheck } from "./free-space.ts";
import { ifPresent } from "./if-present.ts";

const CHUNK_BYTES = 256 * 1024;
/** The maximum number of incomplete uploads of a caller: no policy counts them until they are complete. */
export const MOST_OF_CALLER = 100;
/** The length of the beginning of an id, which the uploads of a caller share. */
export const CALLER_LENGTH = 13;
export const UPLOAD_ID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** Returns an id that begins with a digest of the caller; nobody else can guess the rest. */
export function newUploadId(caller: string): string {
  const digest = createHash("sha256").update(caller).digest("hex");
  return `${digest.slice(0, 8)}-${digest.slice(8, 12)}${randomUUID().slice(CALLER_LENGTH)}`;
}

type WriteDraft = (content: AsyncIterable<Buffer>) => Promise<DraftFile>;

export function makeUnfinishedUploads<About>(folder: string, draft: WriteDraft): UnfinishedUploads<About> {
  const folderOf = (id: string) => join(folder, id.slice(0, CALLER_LENGTH));
  const bytesOf = (id: string) => join(folderOf(id), id);
  const aboutOf = (id: string) => `${bytesOf(id)}.json`;
  const write = async (id: string, about: About) => {
    // The file is renamed, so that a simultaneous request reads it completely.
    await writeFile(`${aboutOf(id)}.new`, JSON.stringify(about), { mode: 0o600 });
    await rename(`${aboutOf(id)}.new`, aboutOf(id));
  };
  const remove = async (id: string) => {
    for (const path of [bytesOf(id), aboutOf(id)]) await rm(path, { force: true });
  };
  return {
    newId: newUploadId,
    async create(id, about) {
      await mkdir(folderOf(id), { recursive: true });
      await makeSpaceCheck(folder)(0);
      await (await open(bytesOf(id), "wx", 0o600)).close();
      // The count includes this upload, so that simultaneous ones cannot exceed the limit.
      const begun = (await readdir(folderOf(id))).filter((name) => UPLOAD_ID.test(name));
      if (begun.length > MOST_OF_CALLER) {
        await rm(bytesOf(id), { force: true });
        throw new TooManyUploads(`A caller has ${MOST_OF_CALLER} unfinished uploads`);
      }
      await write(id, about);
    },
    async read(id) {
      if (!UPLOAD_ID.test(id)) return null;
      return ifPresent(async () => {
        const about = JSON.parse(await readFile(aboutOf(id), "utf8")) as About;
        const bytes = (await ifPresent(() => stat(bytesOf(id))))?.size ?? 0;
        return { about, bytes };
      });
    },
    replace: write,
    append: (id, offset, content) => append(bytesOf(id), offset, content, makeSpaceCheck(folder)),
    finish: (id) => draft(createReadStream(bytesOf(id), { highWaterMark: CHUNK_BYTES })),
    empty: (id) => rm(bytesOf(id), { force: true }),
    remove,
    async removeOlder(ageMs) {
      const timeOf = async (path: string) => (await ifPresent(() => stat(path)))?.mtimeMs ?? 0;
      const isOld = (time: number) => time > 0 && time < Date.now() - ageMs;
      for await (const { name } of (await ifPresent(() => opendir(folder))) ?? []) {
        const path = join(folder, name);
        // The folder's time is that of the last upload that began or ended.
        const isOldFolder = isOld(await timeOf(path));
        const names = (await ifPresent(() => readdir(path))) ?? [];
        // Only the bytes change while an upload goes on, and its description is as old as its beginning.
        const times = new Map<string, number>();
        for (const each of names) {
          const upload = uploadOf(each);
          times.set(upload, Math.max(times.get(upload) ?? 0, await timeOf(join(path, each))));
        }
        const old = names.filter((each) => isOld(times.get(uploadOf(each))!));
        for (const each of old) await rm(join(path, each), { force: true });
        if (isOldFolder && old.length === names.length) await rmdir(path).catch(() => {});
      }
    },
  };
}

/** Returns the id of the upload to which a file belongs. */
const uploadOf = (name: string) => name.replace(/\.json(\.new)?$/, "");

async function append(
  path: string,
  offset: number,
  content: AsyncIterable<Buffer>,
  checkSpace: (bytes: number) => Promise<void>,
): Promise<number> {
  const file = await open(path, "r+");
  let at = offset;
  try {
    for await (const chunk of content) {
      await checkSpace(chunk.length);
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
