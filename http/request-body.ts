import type { IncomingMessage, ServerResponse } from "node:http";
import type { Config } from "#config";
import { ResponseBudget } from "#postgres/database";
import type { ApiError } from "#runtime";
import { paceReading, type Stepwise } from "#runtime/concurrency";
import { type BodyChunks, receiveBody } from "./body-chunks.ts";
import {
  BODY_IDLE_MS,
  bodyTooLarge,
  bodyTooSlow,
  CHUNK_OVERHEAD_BYTES,
  MAX_CHUNKS,
  tooManyBodies,
  tooManyChunks,
} from "./body-errors.ts";
import { HttpError } from "./http-error.ts";
import { type BodyLimit, clientDisconnected } from "./request.ts";

/** The number of bytes of a discarded body that are read per turn, and the number of bodies per turn. */
const DISCARDED_BYTES = 64 * 1024;
const DISCARDED_AT_ONCE = 16;
const DISCARD_PAUSE_MS = 20;
/** A connection that is closed earlier may lose the response that its client has not read yet. */
const LONGEST_DISCARD_MS = 10_000;
const MAX_DISCARDED = 256;

/** The discarded bodies, the oldest first. A paused connection does not notice that its client has disconnected, and keeps its memory. */
const discardedBodies = new Set<DiscardedBody>();
/** The bodies that wait for their turn, in that order. */
const pausedBodies = new Set<DiscardedBody>();
let discardTimer: NodeJS.Timeout | null = null;

/** A body of this size is accepted even if other bodies use all memory. */
const SMALL_BYTES = 16 * 1024;
const NO_BYTES = Buffer.alloc(0);

type RequestBodyOptions = Pick<Config, "maxBodyBytes" | "maxBodyMemory"> &
  Partial<Pick<Config, "requestTimeout">> & { readonly idleMs?: number };

const SHARE = Symbol("share");
/** A request with the memory of its body. Entries of a WeakMap would slow down each garbage collection. */
type AccountedRequest = IncomingMessage & { [SHARE]?: ResponseBudget };

/**
 * The bodies of all requests in flight: together they take at most `maxBodyMemory`, anonymous callers at most half of
 * it. The memory of a request is released when its response is sent or its body is rejected.
 */
export class RequestBodies {
  readonly #maxBytes: number;
  readonly #memory: number;
  readonly #idleMs: number;
  readonly #longestMs: number;
  readonly #all: ResponseBudget;
  readonly #anonymous: ResponseBudget;

  constructor({ maxBodyBytes, maxBodyMemory, requestTimeout, idleMs = BODY_IDLE_MS }: RequestBodyOptions) {
    // A single body of the largest size must fit twice: in chunks and joined.
    const max = Math.max(maxBodyMemory, 2 * maxBodyBytes);
    this.#memory = max;
    this.#maxBytes = maxBodyBytes;
    this.#idleMs = idleMs;
    this.#longestMs = (requestTimeout ?? Number.POSITIVE_INFINITY) * 1000;
    this.#all = new ResponseBudget(max);
    this.#anonymous = new ResponseBudget(max / 2, this.#all, 0);
  }

  /**
   * Call once per request. Rejects a body that is too large (413), too slow (408) or does not fit into memory (503).
   */
  async read(request: IncomingMessage, response: ServerResponse, limit: BodyLimit): Promise<Buffer> {
    refuseEncoded(request);
    const max = limit.bytes < this.#maxBytes ? limit : { ...limit, bytes: this.#maxBytes };
    if (Number(request.headers["content-length"]) > max.bytes) throw bodyTooLarge(max);
    if (request.readableEnded) return NO_BYTES;
    if (request.destroyed) throw clientDisconnected(request.errored);
    const share = this.#openShare(request, response, limit);
    return collectBody(request, { max, share, idleMs: this.#idleMs, longestMs: this.#longestMs });
  }

  /** Call once per request, and instead of `read`. Its first bytes are in memory until the response is sent. */
  async receive(request: IncomingMessage, response: ServerResponse, max: BodyLimit): Promise<BodyChunks> {
    if (Number(request.headers["content-length"]) > max.bytes) throw bodyTooLarge(max);
    if (request.destroyed) throw clientDisconnected(request.errored);
    const share = this.#openShare(request, response, max);
    return receiveBody(request, { max, share, idleMs: this.#idleMs, longestMs: this.#longestMs });
  }

  #openShare(request: IncomingMessage, response: ServerResponse, { isAnonymous }: BodyLimit): ResponseBudget {
    const [memory, all] = isAnonymous ? [this.#memory / 2, this.#anonymous] : [this.#memory, this.#all];
    const share = new ResponseBudget(memory, all, SMALL_BYTES);
    (request as AccountedRequest)[SHARE] = share;
    response.once("close", () => share.giveAllBack());
    return share;
  }

  /** Counts memory for the values that are parsed from the body. Throws if it does not fit. */
  hold(request: IncomingMessage, bytes: number): void {
    const share = (request as AccountedRequest)[SHARE];
    if (share?.take(bytes) !== false) return;
    throw share.isExceeded ? tooMuchMemory() : tooManyBodies();
  }
}

type CollectOptions = {
  readonly max: BodyLimit;
  readonly share: ResponseBudget;
  readonly idleMs: number;
  readonly longestMs: number;
};

/** Uses events: async iteration costs several times as much as a small body itself. */
function collectBody(request: IncomingMessage, { max, share, idleMs, longestMs }: CollectOptions): Promise<Buffer> {
  const deadline = performance.now() + longestMs;
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let bytes = 0;
    let isRefused = false;
    const source = {
      pause: () => void request.pause(),
      resume: () => {
        if (!isRefused) request.resume();
      },
    };
    const take = (chunk: Buffer) => {
      bytes += chunk.length;
      if (bytes > max.bytes) refuse(bodyTooLarge(max));
      else if (chunks.push(chunk) > MAX_CHUNKS) refuse(tooManyChunks());
      else if (!share.take(chunk.length + CHUNK_OVERHEAD_BYTES)) refuse(tooManyBodies());
      else if (performance.now() > deadline) refuse(bodyTooSlow());
      else {
        idle.refresh();
        paceReading(source, chunk.length);
      }
    };
    const refuse = (reason: ApiError) => {
      isRefused = true;
      request.off("data", take).pause();
      clearTimeout(idle);
      for (const chunk of chunks) releaseMemory(chunk);
      chunks.length = 0;
      share.giveAllBack();
      reject(reason);
    };
    const idle = setTimeout(() => refuse(bodyTooSlow()), idleMs);
    request.on("data", take);
    request.on("end", () => {
      clearTimeout(idle);
      resolve(joinChunks(chunks, bytes));
    });
    request.on("error", (fault) => refuse(clientDisconnected(fault)));
  });
}

/**
 * Streams the chunks of a body of any size, no faster than they are used. A reader that stops can still respond. A client
 * that sends nothing for a while is disconnected.
 */
export async function* streamBody(request: IncomingMessage, idleMs = BODY_IDLE_MS): AsyncIterableIterator<Buffer> {
  const idle = setTimeout(() => request.destroy(bodyTooSlow()), idleMs);
  try {
    for await (const chunk of request.iterator({ destroyOnReturn: false })) {
      yield chunk;
      idle.refresh();
    }
  } catch (error) {
    throw error instanceof HttpError ? error : clientDisconnected(error);
  } finally {
    clearTimeout(idle);
  }
}

function joinChunks(chunks: readonly Buffer[], bytes: number): Buffer {
  if (chunks.length === 1) return chunks[0]!;
  const body = Buffer.concat(chunks, bytes);
  for (const chunk of chunks) releaseMemory(chunk);
  return body;
}

/**
 * Releases the memory at once: V8 collects garbage only on allocation, and none follows the end of a flood. The bytes
 * must not be read afterwards.
 */
function releaseMemory({ buffer, length }: Buffer): void {
  // Small Buffers are slices of a shared pool.
  if (buffer instanceof ArrayBuffer && buffer.byteLength === length) buffer.transfer(0);
}

function refuseEncoded({ headers }: IncomingMessage): void {
  const encoding = headers["content-encoding"];
  if (!encoding || encoding === "identity") return;
  throw new HttpError(415, "UNSUPPORTED_MEDIA_TYPE", `The content encoding "${encoding}" is not supported.`, {
    hint: "Send it without Content-Encoding.",
    headers: { "Accept-Encoding": "identity" },
  });
}

/** The error for a body that would not fit even if it were the only one. */
function tooMuchMemory(): HttpError {
  return new HttpError(
    413,
    "PAYLOAD_TOO_LARGE",
    "Parsing the body takes more memory than is reserved for request bodies.",
    {
      hint: "Send it in several requests.",
    },
  );
}

/** A large body that is being discarded. */
type DiscardedBody = { readonly request: IncomingMessage; readonly until: number };

/**
 * Reads the rest of a body whose response is sent, slowly if there are many. If the connection were closed instead, many
 * clients would report a send error and not read the response. Null if nothing is left; else resolves when the body ends or
 * the connection closes.
 */
export function discardBody(request: IncomingMessage): Promise<void> | null {
  if (request.complete || request.destroyed) return null;
  const { promise, resolve } = Promise.withResolvers<void>();
  // A small rest has already arrived.
  if (Number(request.headers["content-length"]) <= DISCARDED_BYTES) {
    request.once("end", resolve).once("close", resolve).resume();
    return promise;
  }
  const entry: DiscardedBody = { request, until: performance.now() + LONGEST_DISCARD_MS };
  const { socket } = request;
  const finish = () => {
    discardedBodies.delete(entry);
    pausedBodies.delete(entry);
    socket.off("close", finish);
    resolve();
  };
  // Node emits no close event on the request after the response.
  socket.once("close", finish);
  request.once("end", finish).once("close", finish);
  let bytes = 0;
  request.on("data", (piece: Buffer) => {
    bytes += piece.length;
    releaseMemory(piece);
    if (bytes < DISCARDED_BYTES) return;
    bytes = 0;
    discardLater(entry);
  });
  discardedBodies.add(entry);
  if (discardedBodies.size > MAX_DISCARDED) closeOldestDiscarded();
  discardLater(entry);
  return promise;
}

function discardLater(entry: DiscardedBody): void {
  entry.request.pause();
  pausedBodies.add(entry);
  discardTimer ??= setInterval(resumeSome, DISCARD_PAUSE_MS).unref();
}

function resumeSome(): void {
  const now = performance.now();
  for (const entry of discardedBodies) {
    if (entry.until > now) break;
    closeDiscarded(entry);
  }
  let count = 0;
  for (const entry of pausedBodies) {
    if (count++ === DISCARDED_AT_ONCE) return;
    pausedBodies.delete(entry);
    entry.request.resume();
  }
  if (discardedBodies.size > 0) return;
  clearInterval(discardTimer!);
  discardTimer = null;
}

function closeOldestDiscarded(): void {
  const [oldest] = discardedBodies;
  closeDiscarded(oldest!);
}

function closeDiscarded(entry: DiscardedBody): void {
  discardedBodies.delete(entry);
  pausedBodies.delete(entry);
  entry.request.socket.destroy();
}

/** Joins the pieces into one Buffer and releases their memory. */
export function* concatenate(pieces: readonly Buffer[], bytes: number): Stepwise<Buffer> {
  const whole = Buffer.allocUnsafeSlow(bytes);
  let at = 0;
  for (const piece of pieces) {
    at += piece.copy(whole, at);
    releaseMemory(piece);
    yield;
  }
  return whole;
}
