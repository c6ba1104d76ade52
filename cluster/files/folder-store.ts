import { createHash, randomUUID } from "node:crypto";
import { type FileHandle, mkdir, open, opendir, rename, rm, stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import { syncFolder } from "../embedded/sync-folder.ts";
import { ChunkBuffers, FileReader, readWhole } from "./file-chunks.ts";
import {
  type BytePart,
  ContentTooLarge,
  type DraftFile,
  type FileStore,
  isSmall,
  type StoredFile,
} from "./file-store.ts";
import { isSpaceScarce, makeSpaceCheck } from "./free-space.ts";
import { ifPresent } from "./if-present.ts";
import { makeUnfinishedUploads } from "./unfinished-uploads.ts";

export const DRAFTS = "drafts";
const UPLOADS = "uploads";
const LIST_SIZE = 1000;
const highWaterMark = ChunkBuffers.BYTES;
const HASH_PATTERN = /^[0-9a-f]{64}$/;

/** Stores contents in a folder of this machine, or of a file system that all gateways share. */
export function makeFolderStore(folder: string): FileStore {
  const pathOf = (hash: string) => join(folder, hash.slice(0, 2), hash);
  const buffers = new ChunkBuffers();
  return {
    draft: (content, maxBytes) => writeDraft(folder, content, maxBytes, pathOf),
    open: (hash) => ifPresent(() => openFile(pathOf(hash), buffers)),
    remove: async (hashes) => {
      for (const hash of hashes) await rm(pathOf(hash), { force: true });
    },
    list: () => listNames(folder),
    uploads: () =>
      makeUnfinishedUploads(join(folder, UPLOADS), (content) =>
        writeDraft(folder, content, Number.POSITIVE_INFINITY, pathOf),
      ),
    isSpaceScarce: () => isSpaceScarce(folder),
    removeDrafts: (olderThanMs) => removeDrafts(join(folder, DRAFTS), olderThanMs),
  };
}

async function writeDraft(
  folder: string,
  content: AsyncIterable<Buffer>,
  maxBytes: number,
  pathOf: (hash: string) => string,
): Promise<DraftFile> {
  const { path, hash, bytes } = await writeSafeDraft(folder, content, maxBytes);
  let isPublished = false;
  return {
    hash,
    bytes,
    async publish() {
      await publish(path, pathOf(hash));
      isPublished = true;
    },
    discard: async () => {
      if (!isPublished) await rm(path, { force: true });
    },
  };
}

/** A file whose bytes are on the disk. */
export type SafeFile = { readonly path: string; readonly hash: string; readonly bytes: number };

export async function writeSafeDraft(
  folder: string,
  content: AsyncIterable<Buffer>,
  maxBytes: number,
): Promise<SafeFile> {
  const path = newDraftPath(folder);
  try {
    return { path, ...(await writeSafely(path, content, maxBytes, makeSpaceCheck(folder))) };
  } catch (error) {
    await rm(path, { force: true });
    throw error;
  }
}

export function newDraftPath(folder: string): string {
  return join(folder, DRAFTS, randomUUID());
}

async function writeSafely(
  path: string,
  content: AsyncIterable<Buffer>,
  maxBytes: number,
  checkSpace: (bytes: number) => Promise<void>,
) {
  const digest = createHash("sha256");
  let bytes = 0;
  const file = await inFolder(path, () => open(path, "wx", 0o600));
  try {
    for await (const chunk of content) {
      bytes += chunk.length;
      if (bytes > maxBytes) throw new ContentTooLarge(`The content has more than ${maxBytes} bytes`);
      await checkSpace(chunk.length);
      digest.update(chunk);
      await writeWhole(file, chunk);
    }
    await file.datasync();
  } finally {
    await file.close();
  }
  return { hash: digest.digest("hex"), bytes };
}

export async function writeWhole(file: FileHandle, chunk: Buffer): Promise<void> {
  for (let at = 0; at < chunk.length; ) at += (await file.write(chunk, at)).bytesWritten;
}

async function publish(draft: string, path: string): Promise<void> {
  const folder = dirname(path);
  await inFolder(path, () => rename(draft, path));
  await syncFolder(folder);
}

/** Creates the folder when it turns out to be missing, which is rare. */
async function inFolder<Result>(path: string, place: () => Promise<Result>): Promise<Result> {
  try {
    return await place();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
    const folder = dirname(path);
    await mkdir(folder, { recursive: true });
    await syncFolder(dirname(folder));
    return place();
  }
}

async function openFile(path: string, buffers: ChunkBuffers): Promise<StoredFile> {
  const file = await open(path, "r");
  try {
    const { size: bytes } = await file.stat();
    return {
      bytes,
      // A stream closes the file itself.
      read: async (part) => (isSmall(part) ? readSmall(file, part) : file.createReadStream({ ...part, highWaterMark })),
      readChunks: async (part) => (isSmall(part) ? readSmall(file, part) : new FileReader(file, part, buffers)),
      close: () => file.close(),
    };
  } catch (error) {
    await file.close();
    throw error;
  }
}

async function readSmall(file: FileHandle, { start, end }: BytePart): Promise<Buffer> {
  try {
    return await readWhole(file, Buffer.allocUnsafe(end - start + 1), start);
  } finally {
    await file.close();
  }
}

async function* listNames(folder: string): AsyncIterable<readonly string[]> {
  const all = await ifPresent(() => opendir(folder, { recursive: true }));
  let names: string[] = [];
  for await (const entry of all ?? []) {
    if (!entry.isFile() || !HASH_PATTERN.test(entry.name)) continue;
    names.push(entry.name);
    if (names.length < LIST_SIZE) continue;
    yield names;
    names = [];
  }
  if (names.length > 0) yield names;
}

export async function removeDrafts(folder: string, olderThanMs: number): Promise<void> {
  const drafts = await ifPresent(() => opendir(folder));
  for await (const { name } of drafts ?? []) {
    const path = join(folder, name);
    const about = await ifPresent(() => stat(path));
    if (about && about.mtimeMs < Date.now() - olderThanMs) await rm(path, { force: true });
  }
}
