import type { Readable } from "node:stream";

/** Where the contents of objects are. A content is immutable and named by its SHA-256; which ones are needed is decided by the database. */
export type FileStore = {
  /** Writes a content and waits until it is safe. It has no name until it is published. Rejects with `ContentTooLarge` or `StoreFull`. */
  draft(content: AsyncIterable<Buffer>, maxBytes: number): Promise<DraftFile>;
  /** Null if the store does not have it. */
  open(hash: string): Promise<StoredFile | null>;
  /** Names that are not stored are ignored. */
  remove(hashes: readonly string[]): Promise<void>;
  /** All names, in portions. */
  list(): AsyncIterable<readonly string[]>;
  /** Those that come in several requests. */
  uploads<About>(): UnfinishedUploads<About>;
  /** Whether what is not needed any more should go sooner. */
  isSpaceScarce(): Promise<boolean>;
  /** Deletes drafts of processes that ended; those that are being written are younger. */
  removeDrafts(olderThanMs: number): Promise<void>;
};

/** An open content. Read it once, or close it. */
export type StoredFile = {
  readonly bytes: number;
  /** A small part as a whole, or a stream. */
  read(part: BytePart): Promise<Buffer | Readable>;
  /** The same for somebody who only passes it on. */
  readChunks(part: BytePart): Promise<Buffer | FileChunks>;
  close(): Promise<void>;
};

/** Read them to the end, or call `return`. */
export type FileChunks = AsyncIterableIterator<FileChunk>;
export type FileChunk = {
  readonly data: Buffer;
  /** Call when the bytes may be overwritten. */
  release(): void;
};

/** From the first to the last byte, inclusive as in HTTP. */
export type BytePart = { readonly start: number; readonly end: number };

const SMALL_BYTES = 64 * 1024;

/** Whether it is read at once. */
export function isSmall({ start, end }: BytePart): boolean {
  return end - start < SMALL_BYTES;
}

export type DraftFile = {
  readonly hash: string;
  readonly bytes: number;
  /** Gives it its name. Safe when it resolves. */
  publish(): Promise<void>;
  /** Call in the end in any case. */
  discard(): Promise<void>;
};

/** Uploads that come in several requests. What was received stays over restarts; several gateways share it as they share the contents. */
export type UnfinishedUploads<About> = {
  /** Names an upload of a caller, so that nobody else can guess the name. */
  newId(caller: string): string;
  /** Rejects with `TooManyUploads` or `StoreFull`. */
  create(id: string, about: About): Promise<void>;
  /** Null if there is none of that id. */
  read(id: string): Promise<UnfinishedUpload<About> | null>;
  replace(id: string, about: About): Promise<void>;
  /** Writes from the offset on; what came before an error stays. Returns the number of bytes that there are now. */
  append(id: string, offset: number, content: AsyncIterable<Buffer>): Promise<number>;
  /** A copy of the whole as a content, which requests that still write to the upload do not change. Waits until it is safe. */
  finish(id: string): Promise<DraftFile>;
  /** Deletes the bytes, and keeps what is known about the upload. */
  empty(id: string): Promise<void>;
  remove(id: string): Promise<void>;
  removeOlder(ageMs: number): Promise<void>;
};

export type UnfinishedUpload<About> = { readonly about: About; readonly bytes: number };

/** The caller has begun too many that are not complete. */
export class TooManyUploads extends Error {
  override name = "TooManyUploads";
}

export class ContentTooLarge extends Error {
  override name = "ContentTooLarge";
}
