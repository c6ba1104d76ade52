import { createReadStream, createWriteStream } from "node:fs";
import { type FileHandle, mkdir, open, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { pipeline } from "node:stream/promises";
import { constants, createGzip } from "node:zlib";
import type { Lsn } from "#postgres/database";
import { syncFolder } from "../embedded/sync-folder.ts";
import {
  COMPRESSED_SUFFIX,
  DRAFT_SUFFIX,
  PARTIAL_SUFFIX,
  readArchiveFolder,
  SEGMENTS,
  type WalArchive,
} from "./archive-folder.ts";
import { segmentName, startOfSegment } from "./wal-segments.ts";

/**
 * Writes WAL to the segment files of an archive: the current one under another name, complete ones compressed in the background.
 * Calls must not overlap.
 */
export class SegmentWriter {
  readonly #archive: WalArchive;
  readonly #folder: string;
  readonly #onError: (error: Error) => void;
  #file: FileHandle | null = null;
  #next: Lsn;
  #synced: Lsn;
  #isDirty = false;
  #compression: Promise<void> = Promise.resolve();

  /** Writing starts at `start`, the beginning of a segment; an earlier part of that segment is written again. */
  constructor(archive: WalArchive, start: Lsn, onError: (error: Error) => void) {
    this.#archive = archive;
    this.#folder = join(archive.folder, SEGMENTS);
    this.#onError = onError;
    this.#next = start;
    this.#synced = start;
  }

  /** Returns the position after the last byte that was written. */
  get next(): Lsn {
    return this.#next;
  }

  /** Returns the position below which everything is on disk. */
  get synced(): Lsn {
    return this.#synced;
  }

  /** Compresses the complete segments of a killed process. */
  async compressLeftOver(): Promise<void> {
    const content = await readArchiveFolder(this.#archive.folder);
    for (const { file, state } of content?.segments ?? []) if (state === "complete") this.#compressLater(file);
  }

  async write(at: Lsn, bytes: Buffer): Promise<void> {
    if (at !== this.#next) throw new Error(`The WAL continues at ${at} instead of ${this.#next}.`);
    const { segmentBytes } = this.#archive;
    for (let done = 0; done < bytes.length; ) {
      const offset = Number(this.#next % BigInt(segmentBytes));
      this.#file ??= await this.#openPartial();
      const part = bytes.subarray(done, done + segmentBytes - offset);
      await writeFully(this.#file, part, offset);
      done += part.length;
      this.#next += BigInt(part.length);
      this.#isDirty = true;
      if (offset + part.length === segmentBytes) await this.#complete();
    }
  }

  async sync(): Promise<void> {
    const next = this.#next;
    if (this.#isDirty && this.#file) await this.#file.datasync();
    this.#isDirty = false;
    this.#synced = next;
  }

  async close(): Promise<void> {
    const file = this.#file;
    this.#file = null;
    await file?.close();
    await this.#compression;
  }

  /** The bytes of an earlier process stay until they are overwritten with the same bytes. */
  async #openPartial(): Promise<FileHandle> {
    await mkdir(this.#folder, { recursive: true, mode: 0o700 });
    const file = `${this.#pathAt(this.#next)}${PARTIAL_SUFFIX}`;
    await (await open(file, "a", 0o600)).close();
    await syncFolder(this.#folder);
    return open(file, "r+");
  }

  async #complete(): Promise<void> {
    const path = this.#pathAt(this.#next - 1n);
    await this.sync();
    await this.#file!.close();
    this.#file = null;
    await rename(`${path}${PARTIAL_SUFFIX}`, path);
    await syncFolder(this.#folder);
    this.#compressLater(path);
  }

  #pathAt(lsn: Lsn): string {
    return join(this.#folder, segmentName(startOfSegment(lsn, this.#archive.segmentBytes), this.#archive));
  }

  /** A file that could not be compressed stays unchanged, and can be restored too. */
  #compressLater(path: string): void {
    this.#compression = this.#compression.then(() => compressFile(path)).catch(this.#onError);
  }
}

async function writeFully(file: FileHandle, bytes: Buffer, offset: number): Promise<void> {
  for (let done = 0; done < bytes.length; ) {
    const { bytesWritten } = await file.write(bytes, done, bytes.length - done, offset + done);
    done += bytesWritten;
  }
}

async function compressFile(path: string): Promise<void> {
  const draft = `${path}${COMPRESSED_SUFFIX}${DRAFT_SUFFIX}`;
  try {
    const target = createWriteStream(draft, { mode: 0o600, flush: true });
    // The lowest level halves the size or better at a fifth of the time.
    await pipeline(createReadStream(path), createGzip({ level: constants.Z_BEST_SPEED }), target);
    await rename(draft, `${path}${COMPRESSED_SUFFIX}`);
    await syncFolder(join(path, ".."));
    await rm(path);
  } catch (error) {
    await rm(draft, { force: true });
    throw error;
  }
}
