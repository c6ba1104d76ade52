import { createHash, randomUUID } from "node:crypto";
import { type FileHandle, mkdir, open, opendir, rename, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import type { Readable } from "node:stream";
import { type BytePart, ContentTooLarge, type DraftFile, type FileStore, type StoredFile } from "./file-store.ts";
import { isSpaceScarce, makeSpaceCheck } from "./free-space.ts";
import { ifPresent } from "./if-present.ts";
import { makeUnfinishedUploads } from "./unfinished-uploads.ts";

export const DRAFTS = "drafts";
const UPLOADS = "uploads";
/** Up to this size a content is read at once. */
const SMALL_BYTES = 64 * 1024;
const CHUNK_BYTES = 256 * 1024;
const LIST_SIZE = 1000;
const HASH_PATTERN = /^[0-9a-f]{64}$/;

/** Contents in a folder of this machine, or of a file system that all gateways share. */
export function makeFolderStore(folder: string): FileStore {
  const pathOf = (hash: string) => join(folder, hash.slice(0, 2), hash);
  return {
    draft: (content, maxBytes) => writeDraft(folder, content, maxBytes, pathOf),
    open: (hash) => ifPresent(() => openFile(pathOf(hash))),
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
  return { hash, bytes, publish: () => publish(path, pathOf(hash)), discard: () => rm(path, { force: true }) };
}

/** A file whose bytes are on the disk. */
export type SafeFile = { readonly path: string; readonly hash: string; readonly bytes: number };

export async function writeSafeDraft(
  folder: string,
  content: AsyncIterable<Buffer>,
  maxBytes: number,
): Promise<SafeFile> {
  await mkdir(join(folder, DRAFTS), { recursive: true });
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
  const file = await open(path, "wx", 0o600);
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
  const folder = join(path, "..");
  const made = await mkdir(folder, { recursive: true });
  await rename(draft, path);
  await syncFolder(folder);
  if (made) await syncFolder(join(folder, ".."));
}

/** Without it, a crash of the machine may forget the name. */
async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, "r");
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

async function openFile(path: string): Promise<StoredFile> {
  const file = await open(path, "r");
  try {
    const { size: bytes } = await file.stat();
    return { bytes, read: (part) => readPart(file, part), close: () => file.close() };
  } catch (error) {
    await file.close();
    throw error;
  }
}

async function readPart(file: FileHandle, { start, end }: BytePart): Promise<Buffer | Readable> {
  const bytes = end - start + 1;
  // It closes the file.
  if (bytes > SMALL_BYTES) return file.createReadStream({ start, end, highWaterMark: CHUNK_BYTES });
  try {
    const content = Buffer.allocUnsafe(bytes);
    for (let at = 0; at < bytes; ) {
      const { bytesRead } = await file.read(content, at, bytes - at, start + at);
      if (bytesRead === 0) throw new Error("A file of the file store has become shorter");
      at += bytesRead;
    }
    return content;
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
