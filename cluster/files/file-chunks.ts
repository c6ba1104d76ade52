import type { FileHandle } from "node:fs/promises";
import type { Readable } from "node:stream";
import type { BytePart, FileChunk, FileChunks } from "./file-store.ts";

/** Reuses buffers of one size: garbage collection is late to free external memory, and visits the whole heap for it. */
export class ChunkBuffers {
  static readonly BYTES = 256 * 1024;
  static readonly MOST_SPARE = 32;
  readonly #spare: Buffer[] = [];

  take(): Buffer {
    return this.#spare.pop() ?? Buffer.allocUnsafeSlow(ChunkBuffers.BYTES);
  }

  /** Returns a buffer; the caller must not use it any more. */
  give(buffer: Buffer): void {
    if (this.#spare.length < ChunkBuffers.MOST_SPARE) this.#spare.push(buffer);
  }
}

/** Reads a part of a file, and closes the file. The next chunk is read while the consumer passes one on. */
export class FileReader implements AsyncIterableIterator<FileChunk> {
  readonly #file: FileHandle;
  readonly #buffers: ChunkBuffers;
  readonly #end: number;
  #at: number;
  #reading: { readonly buffer: Buffer; readonly data: Promise<Buffer> } | null = null;
  #isClosed = false;

  constructor(file: FileHandle, { start, end }: BytePart, buffers: ChunkBuffers) {
    this.#file = file;
    this.#at = start;
    this.#end = end;
    this.#buffers = buffers;
    this.#readAhead();
  }

  async next(): Promise<IteratorResult<FileChunk, undefined>> {
    if (!this.#reading) return this.return();
    const { buffer, data } = this.#reading;
    try {
      const chunk = { data: await data, release: () => this.#buffers.give(buffer) };
      this.#readAhead();
      return { done: false, value: chunk };
    } catch (error) {
      await this.return();
      throw error;
    }
  }

  async return(): Promise<{ done: true; value: undefined }> {
    if (!this.#isClosed) {
      this.#isClosed = true;
      await this.#dropReadAhead();
      await this.#file.close();
    }
    return { done: true, value: undefined };
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  async #dropReadAhead(): Promise<void> {
    if (!this.#reading) return;
    const { buffer, data } = this.#reading;
    this.#reading = null;
    await data.catch(() => {});
    this.#buffers.give(buffer);
  }

  #readAhead(): void {
    const length = Math.min(this.#end + 1 - this.#at, ChunkBuffers.BYTES);
    this.#reading = null;
    if (length <= 0 || this.#isClosed) return;
    const buffer = this.#buffers.take();
    const data = readWhole(this.#file, buffer.subarray(0, length), this.#at);
    // The error is reported when the chunk is requested.
    data.catch(() => {});
    this.#reading = { buffer, data };
    this.#at += length;
  }
}

export async function readWhole(file: FileHandle, content: Buffer, start: number): Promise<Buffer> {
  for (let at = 0; at < content.length; ) {
    const { bytesRead } = await file.read(content, at, content.length - at, start + at);
    if (bytesRead === 0) throw new Error("A file of the file store has become shorter");
    at += bytesRead;
  }
  return content;
}

/**
 * Returns the chunks of a stream, whose memory is not reused. This is no generator, whose `return` closes nothing before the
 * first chunk was read.
 */
export function chunksOf(content: Readable): FileChunks {
  const pieces: AsyncIterator<Buffer, undefined> = content[Symbol.asyncIterator]();
  return {
    async next() {
      const piece = await pieces.next();
      return piece.done ? piece : { done: false, value: { data: piece.value, release() {} } };
    },
    async return() {
      content.destroy();
      return { done: true, value: undefined };
    },
    [Symbol.asyncIterator]() {
      return this;
    },
  };
}
