import type { IncomingMessage } from "node:http";

/** Of each body that nobody wants so much is read before others have their turn, and so many at a time. */
const DISCARDED_BYTES = 64 * 1024;
const DISCARDED_AT_ONCE = 16;
const DISCARD_PAUSE_MS = 20;

/** In the order in which they are read on. */
const waiting = new Set<IncomingMessage>();
let discarding: NodeJS.Timeout | null = null;

/**
 * Reads on to the end of a body whose request is answered, and slowly, however many there are. Were the connection
 * closed instead, many a client would notice that it cannot send on, and not look why. Null where there is nothing to read; else
 * resolves when nothing more comes.
 */
export function discardRest(request: IncomingMessage): Promise<void> | null {
  if (request.complete || request.destroyed) return null;
  const { promise, resolve } = Promise.withResolvers<void>();
  let bytes = 0;
  request.on("data", (piece: Buffer) => {
    bytes += piece.length;
    if (bytes < DISCARDED_BYTES) return;
    bytes = 0;
    discardLater(request);
  });
  request.once("end", resolve).once("close", () => {
    waiting.delete(request);
    resolve();
  });
  // What is small has arrived already.
  if (Number(request.headers["content-length"]) <= DISCARDED_BYTES) request.resume();
  else discardLater(request);
  return promise;
}

function discardLater(request: IncomingMessage): void {
  request.pause();
  waiting.add(request);
  discarding ??= setInterval(discardSome, DISCARD_PAUSE_MS).unref();
}

function discardSome(): void {
  let count = 0;
  for (const request of waiting) {
    if (count++ === DISCARDED_AT_ONCE) return;
    waiting.delete(request);
    request.resume();
  }
  if (waiting.size > 0) return;
  clearInterval(discarding!);
  discarding = null;
}
