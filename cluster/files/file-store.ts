import type { Readable } from "node:stream";

/**
 * The store for the contents of objects. A content is immutable and named by its SHA-256; the database decides which
 * contents are needed.
 */
export type FileStore = {
  /**
   * Writes a content and waits until it is on disk. It has no name until it is published. Rejects with `ContentTooLarge` or
   * `StoreFull`.
   */
  draft(content: AsyncIterable<Buffer>, maxBytes: number): Promise<DraftFile>;
  /** Returns null if the store does not have it. */
  open(hash: string): Promise<StoredFile | null>;
  /** Ignores names that are not stored. */
  remove(hashes: readonly string[]): Promise<void>;
  /** Lists all names, in portions. */
  list(): AsyncIterable<readonly string[]>;
  /** Returns the uploads that arrive in several requests. */
  uploads<About>(): UnfinishedUploads<About>;
  /** Returns true if unneeded contents should be deleted sooner. */
  isSpaceScarce(): Promise<boolean>;
  /** Deletes drafts of processes that ended; drafts that are being written are younger. */
  removeDrafts(olderThanMs: number): Promise<void>;
};

/** An open content. It must be read once, or closed. */
export type StoredFile = {
  readonly bytes: number;
  /** Returns a small part as a whole, or a stream. */
  read(part: BytePart): Promise<Buffer | Readable>;
  /** Returns the same for a consumer that only passes it on. */
  readChunks(part: BytePart): Promise<Buffer | FileChunks>;
  close(): Promise<void>;
};

/** The chunks must be read to the end, or `return` must be called. */
export type FileChunks = AsyncIterableIterator<FileChunk>;
export type FileChunk = {
  readonly data: Buffer;
  /** Must be called when the bytes may be overwritten. */
  release(): void;
};

/** The first and the last byte, inclusive as in HTTP. */
export type BytePart = { readonly start: number; readonly end: number };

const SMALL_BYTES = 64 * 1024;

/** True if the part is read at once. */
export function isSmall({ start, end }: BytePart): boolean {
  return end - start < SMALL_BYTES;
}

export type DraftFile = {
  readonly hash: string;
  readonly bytes: number;
  /** Gives the content its name. The content is on disk when it resolves. */
  publish(): Promise<void>;
  /** Must be called at the end in any case. */
  discard(): Promise<void>;
};

/** Uploads that arrive in several requests. Received bytes survive restarts; several gateways share them like the contents. */
export type UnfinishedUploads<About> = {
  /** Returns a name for an upload of a caller that nobody else can guess. */
  newId(caller: string): string;
  /** Rejects with `TooManyUploads` or `StoreFull`. */
  create(id: string, about: About): Promise<void>;
  /** Returns null if there is no upload with that id. */
  read(id: string): Promise<UnfinishedUpload<About> | null>;
  replace(id: string, about: About): Promise<void>;
  /** Writes from the offset on; bytes received before an error are kept. Returns the resulting number of bytes. */
  append(id: string, offset: number, content: AsyncIterable<Buffer>): Promise<number>;
  /** Copies the whole upload to a content, which requests that still write to the upload do not change. Waits until it is on disk. */
  finish(id: string): Promise<DraftFile>;
  /** Deletes the bytes, and keeps the data about the upload. */
  empty(id: string): Promise<void>;
  remove(id: string): Promise<void>;
  removeOlder(ageMs: number): Promise<void>;
};

type UnfinishedUpload<About> = { readonly about: About; readonly bytes: number };

/** The error for a caller that has begun too many incomplete uploads. */
export class TooManyUploads extends Error {
  override name = "TooManyUploads";
}

export class ContentTooLarge extends Error {
  override name = "ContentTooLarge";
}
