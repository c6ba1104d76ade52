import type { IncomingMessage } from "node:http";

/** Of each body that nobody wants so much is read before others have their turn, and so many at a time. */
const DISCARDED_BYTES = 64 * 1024;
const DISCARDED_AT_ONCE = 16;
const DISCARD_PAUSE_MS = 20;
/** A connection that is cut off earlier may lose the response that its client has not read yet. */
const LONGEST_DISCARD_MS = 10_000;
const MOST_DISCARDED = 256;

/** A large body that is being discarded. */
type Discarded = { readonly request: IncomingMessage; readonly until: number };

/** The oldest first. A connection that waits for its turn does not notice that its client has left, and keeps its memory. */
const discarded = new Set<Discarded>();
/** Those that wait for their turn, in the order in which they have it. */
const waiting = new Set<Discarded>();
let discarding: NodeJS.Timeout | null = null;

/**
 * Reads on to the end of a body whose request is answered, and slowly, however many there are. Were the connection
 * closed instead, many a client would notice that it cannot send on, and not look why. Null where there is nothing to read; else
 * resolves when nothing more comes.
 */
export function discardRest(request: IncomingMessage): Promise<void> | null {
  if (request.complete || request.destroyed) return null;
  const { promise, resolve } = Promise.withResolvers<void>();
  // What is small has arrived already.
  if (Number(request.headers["content-length"]) <= DISCARDED_BYTES) {
    request.once("end", resolve).once("close", resolve).resume();
    return promise;
  }
  const entry: Discarded = { request, until: performance.now() + LONGEST_DISCARD_MS };
  const { socket } = request;
  const finish = () => {
    discarded.delete(entry);
    waiting.delete(entry);
    socket.off("close", finish);
    resolve();
  };
  // A request that is answered is not told that its connection was closed.
  socket.once("close", finish);
  request.once("end", finish).once("close", finish);
  let bytes = 0;
  request.on("data", (piece: Buffer) => {
    bytes += piece.length;
    if (bytes < DISCARDED_BYTES) return;
    bytes = 0;
    discardLater(entry);
  });
  discarded.add(entry);
  if (discarded.size > MOST_DISCARDED) cutOffOldest();
  discardLater(entry);
  return promise;
}

function discardLater(entry: Discarded): void {
  entry.request.pause();
  waiting.add(entry);
  discarding ??= setInterval(discardSome, DISCARD_PAUSE_MS).unref();
}

function discardSome(): void {
  const now = performance.now();
  for (const entry of discarded) {
    if (entry.until > now) break;
    cutOff(entry);
  }
  let count = 0;
  for (const entry of waiting) {
    if (count++ === DISCARDED_AT_ONCE) return;
    waiting.delete(entry);
    entry.request.resume();
  }
  if (discarded.size > 0) return;
  clearInterval(discarding!);
  discarding = null;
}

function cutOffOldest(): void {
  const [oldest] = discarded;
  cutOff(oldest!);
}

function cutOff(entry: Discarded): void {
  discarded.delete(entry);
  waiting.delete(entry);
  entry.request.socket.destroy();
}
