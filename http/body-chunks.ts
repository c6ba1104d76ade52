import type { IncomingMessage } from "node:http";
import type { ResponseBudget } from "#postgres/database";
import { paceReading } from "#runtime/concurrency";
import {
  BODY_IDLE_MS,
  bodyTooLarge,
  bodyTooSlow,
  CHUNK_OVERHEAD_BYTES,
  MAX_CHUNKS,
  tooManyBodies,
  tooManyChunks,
} from "./body-errors.ts";
import { type BodyLimit, clientDisconnected } from "./request.ts";

/** A body of this size must arrive completely before it is processed. */
const FIRST_BYTES = 1024 * 1024;
/** The rest of a larger body must arrive at this rate, while its reader waits for it. */
const MIN_BYTES_PER_SECOND = 16 * 1024;

type ReceiveOptions = {
  readonly max: BodyLimit;
  /** The memory of the first bytes. */
  readonly share: ResponseBudget;
  readonly idleMs: number;
  /** The time limit for the first bytes. */
  readonly longestMs: number;
};

/**
 * Resolves with the chunks of the body when it or its first megabyte has arrived: until then a slow client takes only the
 * memory of the bytes that it has sent. Rejects a body that is too large (413), too slow (408) or does not fit into memory
 * (503).
 */
export async function receiveBody(request: IncomingMessage, options: ReceiveOptions): Promise<BodyChunks> {
  const { max, share, idleMs, longestMs } = options;
  const reader = new ChunkReader(request, max);
  const first: Buffer[] = [];
  const deadline = performance.now() + longestMs;
  let bytes = 0;
  try {
    while (bytes < FIRST_BYTES) {
      const chunk = await reader.read(Math.min(idleMs, deadline - performance.now()));
      if (chunk === null) break;
      bytes += chunk.length;
      if (first.push(chunk) > MAX_CHUNKS) throw tooManyChunks();
      if (!share.take(chunk.length + CHUNK_OVERHEAD_BYTES)) throw tooManyBodies();
    }
  } catch (error) {
    reader.close();
    share.giveAllBack();
    throw error;
  }
  return new BodyChunks(reader, first, idleMs);
}

/** The chunks of a body, no faster than they are used. A reader that stops can still respond. */
export class BodyChunks implements AsyncIterableIterator<Buffer> {
  readonly #reader: ChunkReader;
  readonly #first: Buffer[];
  readonly #idleMs: number;
  /** The current size of the rest. */
  #bytes = 0;
  readonly #waitedBefore: number;

  constructor(reader: ChunkReader, first: Buffer[], idleMs: number = BODY_IDLE_MS) {
    this.#reader = reader;
    this.#first = first;
    this.#idleMs = idleMs;
    this.#waitedBefore = reader.waitedMs;
  }

  /** True if more of the body may arrive and a reader wants it. */
  get isOpen(): boolean {
    return this.#reader.isOpen;
  }

  async next(): Promise<IteratorResult<Buffer, undefined>> {
    const chunk = this.#first.shift() ?? (await this.#readRest());
    return chunk === null ? { value: undefined, done: true } : { value: chunk, done: false };
  }

  async return(): Promise<IteratorResult<Buffer, undefined>> {
    this.#reader.close();
    this.#first.length = 0;
    return { value: undefined, done: true };
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  async #readRest(): Promise<Buffer | null> {
    const waitedMs = this.#reader.waitedMs - this.#waitedBefore;
    const allowedMs = this.#idleMs + (1000 * this.#bytes) / MIN_BYTES_PER_SECOND - waitedMs;
    const chunk = await this.#reader.read(Math.min(this.#idleMs, allowedMs));
    this.#bytes += chunk?.length ?? 0;
    return chunk;
  }
}

/** Reads one chunk at a time. An iterator of Node cannot stop to wait for a chunk without closing the connection. */
class ChunkReader {
  readonly #request: IncomingMessage;
  readonly #max: BodyLimit;
  readonly #chunks: Buffer[] = [];
  #bytes = 0;
  #ending: { readonly error: unknown } | null = null;
  #isClosed = false;
  #waiting: PromiseWithResolvers<void> | null = null;
  #isPaced = false;
  #onResume: () => void = () => {};
  #waitedMs = 0;

  constructor(request: IncomingMessage, max: BodyLimit) {
    this.#request = request;
    this.#max = max;
    if (request.readableEnded) this.#ending = { error: null };
    else request.on("data", this.#take).on("end", this.#end).on("error", this.#fail).on("close", this.#leave).pause();
  }

  /** The time for which the client sent nothing while a reader waited for it. */
  get waitedMs(): number {
    return this.#waitedMs;
  }

  get isOpen(): boolean {
    return !this.#isClosed && this.#ending === null;
  }

  /** Returns null at the end. */
  async read(withinMs: number): Promise<Buffer | null> {
    if (this.#chunks.length === 0 && this.isOpen) await this.#wait(withinMs);
    const chunk = this.#chunks.shift();
    if (chunk) return chunk;
    if (this.#ending?.error) throw this.#ending.error;
    if (this.isOpen) throw bodyTooSlow();
    return null;
  }

  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#chunks.length = 0;
    this.#request.off("data", this.#take).off("end", this.#end).off("close", this.#leave).pause();
    this.#waiting?.resolve();
  }

  async #wait(withinMs: number): Promise<void> {
    this.#waiting = Promise.withResolvers();
    if (this.#isPaced) await Promise.race([this.#waiting.promise, new Promise<void>((go) => (this.#onResume = go))]);
    if (this.isOpen) {
      const since = performance.now();
      const tooLate = setTimeout(() => this.#waiting?.resolve(), Math.max(0, withinMs));
      this.#request.resume();
      await this.#waiting.promise;
      clearTimeout(tooLate);
      this.#waitedMs += performance.now() - since;
    }
    this.#waiting = null;
  }

  #take = (chunk: Buffer): void => {
    this.#bytes += chunk.length;
    if (this.#bytes > this.#max.bytes) {
      this.#stop(bodyTooLarge(this.#max));
      return;
    }
    this.#chunks.push(chunk);
    this.#request.pause();
    paceReading(this.#pacing, chunk.length);
    this.#waiting?.resolve();
  };

  readonly #pacing = {
    pause: () => {
      this.#isPaced = true;
    },
    resume: () => {
      this.#isPaced = false;
      this.#onResume();
    },
  };

  #end = (): void => this.#stop(null);
  #fail = (error: unknown): void => this.#stop(clientDisconnected(error));
  #leave = (): void => this.#stop(clientDisconnected());

  #stop(error: unknown): void {
    this.#ending ??= { error };
    this.#request.off("data", this.#take).pause();
    this.#waiting?.resolve();
  }
}
