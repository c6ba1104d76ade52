import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { mkdir, open, rm } from "node:fs/promises";
import { join } from "node:path";
import { type DraftFile, TooManyUploads, type UnfinishedUploads } from "./file-store.ts";
import { DRAFTS, newDraftPath, writeWhole } from "./folder-store.ts";
import type { S3Client, S3Object } from "./s3-client.ts";
import { CALLER_LENGTH, MOST_OF_CALLER, newUploadId, UPLOAD_ID } from "./unfinished-uploads.ts";

const UPLOADS = "uploads/";
/** The maximum number of bytes of a request that are lost if its gateway ends. */
const SEGMENT_BYTES = 16 * 1024 * 1024;
const SEGMENT = /\/\d{15}$/;
/** The suffix of the mark that the upload has become an object. */
const COMPLETE = "/complete";
const NO_BYTES = { bytes: 0, sha256: createHash("sha256").digest("hex") };
/** The digits make the order of names that of offsets. */
const OFFSET_DIGITS = 15;

/** Each request adds objects that are named by their offset. */
export function makeS3Uploads<About>(
  client: S3Client,
  folder: string,
  draft: (content: AsyncIterable<Buffer>) => Promise<DraftFile>,
): UnfinishedUploads<About> {
  const prefixOf = (id: string) => `${UPLOADS}${id}/`;
  const aboutOf = (id: string) => `${prefixOf(id)}about`;
  const write = async (id: string, about: About) => {
    const text = Buffer.from(JSON.stringify(about));
    const sha256 = createHash("sha256").update(text).digest("hex");
    await client.put(aboutOf(id), () => text, { bytes: text.length, sha256 });
  };
  const segmentsOf = async (id: string) => {
    const all: S3Object[] = [];
    for await (const objects of client.list(prefixOf(id))) all.push(...objects.filter(({ key }) => SEGMENT.test(key)));
    return joinSegments(all, prefixOf(id));
  };
  const remove = async (id: string, pattern?: RegExp) => {
    for await (const objects of client.list(prefixOf(id)))
      for (const { key } of objects) if (pattern?.test(key) ?? true) await client.delete(key);
  };
  return {
    newId: newUploadId,
    async create(id, about) {
      await write(id, about);
      if ((await countOfCaller(client, id)) <= MOST_OF_CALLER) return;
      await client.delete(aboutOf(id));
      throw new TooManyUploads(`A caller has ${MOST_OF_CALLER} unfinished uploads`);
    },
    replace: write,
    async read(id) {
      if (!UPLOAD_ID.test(id)) return null;
      const content = await client.get(aboutOf(id));
      if (!content) return null;
      const about = JSON.parse(Buffer.concat(await content.toArray()).toString("utf8")) as About;
      return { about, bytes: (await segmentsOf(id)).at(-1)?.end ?? 0 };
    },
    async append(id, offset, content) {
      const path = newDraftPath(folder);
      await mkdir(join(folder, DRAFTS), { recursive: true });
      try {
        return await putSegments(client, path, offset, content, (at) => `${prefixOf(id)}${spellOffset(at)}`);
      } finally {
        await rm(path, { force: true });
      }
    },
    finish: async (id) => draft(readSegments(client, await segmentsOf(id))),
    async empty(id) {
      await client.put(`${UPLOADS}${id}${COMPLETE}`, () => Buffer.alloc(0), NO_BYTES);
      await remove(id, SEGMENT);
    },
    remove: (id) => remove(id),
    async removeOlder(ageMs) {
      for await (const objects of client.list(UPLOADS))
        for (const { key, changedAt } of objects)
          if (changedAt.getTime() < Date.now() - ageMs) await client.delete(key);
    },
  };
}

/**
 * Counts the caller's incomplete uploads, including this one, so that simultaneous ones cannot exceed the limit. Emptied
 * uploads are complete.
 */
async function countOfCaller(client: S3Client, id: string): Promise<number> {
  const known = new Set<string>();
  const complete = new Set<string>();
  for await (const objects of client.list(`${UPLOADS}${id.slice(0, CALLER_LENGTH)}`))
    for (const { key } of objects) {
      const upload = key.slice(0, key.lastIndexOf("/"));
      (key.endsWith(COMPLETE) ? complete : known).add(upload);
    }
  return known.difference(complete).size;
}

function spellOffset(offset: number): string {
  return String(offset).padStart(OFFSET_DIGITS, "0");
}

/** Keeps the bytes received before an error. */
async function putSegments(
  client: S3Client,
  path: string,
  offset: number,
  content: AsyncIterable<Buffer>,
  keyAt: (offset: number) => string,
): Promise<number> {
  let at = offset;
  let failure: unknown = null;
  const chunks = content[Symbol.asyncIterator]();
  for (let isOver = false; !isOver; ) {
    const digest = createHash("sha256");
    let bytes = 0;
    const file = await open(path, "w", 0o600);
    try {
      while (bytes < SEGMENT_BYTES && !isOver) {
        const { done, value } = await chunks.next();
        if (done) isOver = true;
        else {
          digest.update(value);
          await writeWhole(file, value);
          bytes += value.length;
        }
      }
    } catch (error) {
      failure = error;
      isOver = true;
    } finally {
      await file.close();
    }
    if (bytes > 0) await client.put(keyAt(at), () => createReadStream(path), { bytes, sha256: digest.digest("hex") });
    at += bytes;
  }
  if (failure !== null) throw failure;
  return at;
}

/** The bytes of an upload from `start` up to `end`; other segments also contain the bytes before `start`. */
type Segment = { readonly key: string; readonly offset: number; readonly start: number; readonly end: number };

/**
 * Joins segments without gaps, from the first byte on. Two gateways that received the same bytes may have written segments
 * that overlap.
 */
function joinSegments(objects: readonly S3Object[], prefix: string): readonly Segment[] {
  const joined: Segment[] = [];
  let end = 0;
  const sorted = objects.map(({ key, bytes }) => ({ key, bytes, offset: Number(key.slice(prefix.length)) }));
  for (const { key, bytes, offset } of sorted.sort((one, other) => one.offset - other.offset)) {
    if (offset > end) break;
    if (offset + bytes <= end) continue;
    joined.push({ key, offset, start: end, end: offset + bytes });
    end = offset + bytes;
  }
  return joined;
}

async function* readSegments(client: S3Client, segments: readonly Segment[]): AsyncGenerator<Buffer> {
  for (const { key, offset, start, end } of segments) {
    const content = await client.get(key, { start: start - offset, end: end - offset - 1 });
    if (!content) throw new Error("A part of an upload has gone");
    yield* content;
  }
}
