import { RecentMap } from "#runtime";
import type { BytePart, FileStore, StoredFile } from "./file-store.ts";

const MAX_CACHED_BYTES = 16 * 1024 * 1024;
/** The maximum size of one content. */
const MAX_BYTES = 64 * 1024;

/** Keeps recently read small contents in memory: a content never changes, and permission to read it is checked before. */
export function cacheContents(store: FileStore): FileStore {
  const cached = new RecentMap<string, Buffer>(MAX_CACHED_BYTES, (_, { length }) => length);
  return {
    ...store,
    async open(hash) {
      const known = cached.get(hash);
      if (known) return openCached(known);
      const file = await store.open(hash);
      if (!file || file.bytes === 0 || file.bytes > MAX_BYTES) return file;
      // Simultaneous requests read it too; the last copy is kept.
      const content = await readWhole(file);
      cached.set(hash, content);
      return openCached(content);
    },
  };
}

/** Returns a file like those of the store; there is nothing to close. */
function openCached(content: Buffer): StoredFile {
  const { length: bytes } = content;
  const read = async ({ start, end }: BytePart) => content.subarray(start, end + 1);
  return { bytes, read, readChunks: read, close: async () => {} };
}

/** The content gets its own memory: a slice of Node's pool would retain the bytes beside it. */
async function readWhole(file: StoredFile): Promise<Buffer> {
  const content = Buffer.allocUnsafeSlow(file.bytes);
  let at = 0;
  const read = await file.read({ start: 0, end: file.bytes - 1 });
  for await (const chunk of Buffer.isBuffer(read) ? [read] : read) at += chunk.copy(content, at);
  if (at < content.length) throw new Error("A file of the file store has become shorter");
  return content;
}
