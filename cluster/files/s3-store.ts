import { createReadStream } from "node:fs";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { chunksOf } from "./file-chunks.ts";
import { type BytePart, type DraftFile, type FileStore, isSmall, type StoredFile } from "./file-store.ts";
import { DRAFTS, removeDrafts, type SafeFile, writeSafeDraft } from "./folder-store.ts";
import { S3Client, type S3Location } from "./s3-client.ts";
import { makeS3Uploads } from "./s3-uploads.ts";

const CONTENTS = "contents/";
const HASH_PATTERN = /^contents\/([0-9a-f]{64})$/;
/** The maximum size of one request to S3. */
const MAX_BYTES = 5 * 1024 ** 3;
const REMOVED_AT_ONCE = 8;

/**
 * Stores contents in a bucket of an S3 service, which several gateways share. They are written to a folder of this machine
 * first: the name is known only at their end, and a failed attempt is repeated.
 */
export function makeS3Store(location: S3Location, folder: string): FileStore {
  const client = new S3Client(location);
  const keyOf = (hash: string) => `${CONTENTS}${hash}`;
  const draft = (content: AsyncIterable<Buffer>, maxBytes: number) => writeDraft(client, folder, content, maxBytes);
  return {
    draft,
    async open(hash) {
      const bytes = await client.size(keyOf(hash));
      return bytes === null ? null : openObject(client, keyOf(hash), bytes);
    },
    async remove(hashes) {
      for (let at = 0; at < hashes.length; at += REMOVED_AT_ONCE) {
        const some = hashes.slice(at, at + REMOVED_AT_ONCE);
        await Promise.all(some.map((hash) => client.delete(keyOf(hash))));
      }
    },
    async *list() {
      for await (const objects of client.list(CONTENTS))
        yield objects.flatMap(({ key }) => HASH_PATTERN.exec(key)?.[1] ?? []);
    },
    uploads: () => makeS3Uploads(client, folder, (content) => draft(content, MAX_BYTES)),
    // A bucket has no size.
    isSpaceScarce: async () => false,
    removeDrafts: (olderThanMs) => removeDrafts(join(folder, DRAFTS), olderThanMs),
  };
}

async function writeDraft(
  client: S3Client,
  folder: string,
  content: AsyncIterable<Buffer>,
  maxBytes: number,
): Promise<DraftFile> {
  const file = await writeSafeDraft(folder, content, Math.min(maxBytes, MAX_BYTES));
  const discard = () => rm(file.path, { force: true });
  try {
    // The content is uploaded before the transaction that names it, which is short then.
    await putContent(client, file);
  } catch (error) {
    await discard();
    throw error;
  }
  // The content may have been collected since.
  return { hash: file.hash, bytes: file.bytes, publish: () => putContent(client, file), discard };
}

async function putContent(client: S3Client, { path, hash, bytes }: SafeFile): Promise<void> {
  const key = `${CONTENTS}${hash}`;
  if ((await client.size(key)) === bytes) return;
  await client.put(key, () => (bytes === 0 ? Buffer.alloc(0) : createReadStream(path)), { bytes, sha256: hash });
}

function openObject(client: S3Client, key: string, bytes: number): StoredFile {
  const read = async (part: BytePart) => {
    if (part.end < part.start) return Buffer.alloc(0);
    const content = await client.get(key, part);
    if (!content) throw new Error("A file of the file store has gone");
    return isSmall(part) ? Buffer.concat(await content.toArray()) : content;
  };
  return {
    bytes,
    read,
    async readChunks(part) {
      const content = await read(part);
      return Buffer.isBuffer(content) ? content : chunksOf(content);
    },
    async close() {},
  };
}
