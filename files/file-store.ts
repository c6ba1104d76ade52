import type { Readable } from "node:stream";
import type { UnfinishedUploads } from "./unfinished-uploads.ts";

/** Where the contents of objects are. A content is immutable and named by its SHA-256; which ones are needed is decided by the database. */
export type FileStore = {
  /** Writes a content and waits until it is safe. It has no name until it is published. Rejects with `ContentTooLarge`. */
  draft(content: AsyncIterable<Buffer>, maxBytes: number): Promise<DraftFile>;
  /** Null if the store does not have it. */
  open(hash: string): Promise<StoredFile | null>;
  /** Names that are not stored are ignored. */
  remove(hashes: readonly string[]): Promise<void>;
  /** All names, in portions. */
  list(): AsyncIterable<readonly string[]>;
  /** Those that come in several requests. */
  uploads<About>(): UnfinishedUploads<About>;
  /** Deletes drafts of processes that ended; those that are being written are younger. */
  removeDrafts(olderThanMs: number): Promise<void>;
};

/** An open content. Read it once, or close it. */
export type StoredFile = {
  readonly bytes: number;
  /** A small part as a whole, or a stream. */
  read(part: BytePart): Promise<Buffer | Readable>;
  close(): Promise<void>;
};

/** From the first to the last byte, inclusive as in HTTP. */
export type BytePart = { readonly start: number; readonly end: number };

export type DraftFile = {
  readonly hash: string;
  readonly bytes: number;
  /** Gives it its name. Safe when it resolves. */
  publish(): Promise<void>;
  /** Call in the end in any case. */
  discard(): Promise<void>;
};

export class ContentTooLarge extends Error {
  override name = "ContentTooLarge";
}
