import type { IncomingMessage, ServerResponse } from "node:http";
import type { BodyLimit } from "../engine/caller/body-limit.ts";
import type { Config } from "../engine/config/config.ts";
import { Budget } from "../engine/database/budget.ts";
import { ApiError, unavailable } from "../engine/errors.ts";
import { paceReading } from "../engine/paced-reading.ts";
import { clientLeft } from "./http.ts";

/** For how long nothing may come of a body whose end has not come. */
const IDLE_MS = 15_000;
/** A small body is taken although others hold all that there is. */
const SMALL_BYTES = 16 * 1024;
/** What it takes to keep a piece of a body, however short. */
const PIECE_BYTES = 512;
/** The largest body in pieces of 640 bytes. */
const MOST_PIECES = 16_384;
const NO_BYTES = Buffer.alloc(0);

type Options = Pick<Config, "maxBodyBytes" | "maxBodyMemory"> & { readonly idleMs?: number };

/**
 * The bodies of all requests in flight: together they take no more memory than `maxBodyMemory`, of which anonymous callers
 * may have half. What a request takes is given back when it is answered, or as soon as it is refused.
 */
export class RequestBodies {
  readonly #mostBytes: number;
  readonly #memory: number;
  readonly #idleMs: number;
  readonly #all: Budget;
  readonly #anonymous: Budget;
  readonly #shares = new WeakMap<IncomingMessage, Budget>();

  constructor({ maxBodyBytes, maxBodyMemory, idleMs = IDLE_MS }: Options) {
    // A single body of the largest size has to fit, in the time between its pieces and its whole twice.
    const most = Math.max(maxBodyMemory, 2 * maxBodyBytes);
    this.#memory = most;
    this.#mostBytes = maxBodyBytes;
    this.#idleMs = idleMs;
    this.#all = new Budget(most);
    this.#anonymous = new Budget(most / 2, this.#all, 0);
  }

  /** Once for each request. Refuses a body that is larger than the limit (413), comes too slowly (408), or does not fit (503). */
  async read(request: IncomingMessage, response: ServerResponse, limit: BodyLimit): Promise<Buffer> {
    refuseEncoded(request);
    const most = limit.bytes < this.#mostBytes ? limit : { ...limit, bytes: this.#mostBytes };
    if (Number(request.headers["content-length"]) > most.bytes) throw tooLarge(most);
    if (request.readableEnded) return NO_BYTES;
    if (request.destroyed) throw clientLeft(request.errored);
    const [memory, all] = limit.isAnonymous ? [this.#memory / 2, this.#anonymous] : [this.#memory, this.#all];
    const share = new Budget(memory, all, SMALL_BYTES);
    this.#shares.set(request, share);
    response.once("close", () => share.giveAllBack());
    return collect(request, { most, share, idleMs: this.#idleMs });
  }

  /** Counts what is made of the body beside it. Refuses what does not fit. */
  hold(request: IncomingMessage, bytes: number): void {
    const share = this.#shares.get(request);
    if (share?.take(bytes) !== false) return;
    throw share.isExceeded ? tooMuchMade() : tooManyBodies();
  }
}

type Terms = { readonly most: BodyLimit; readonly share: Budget; readonly idleMs: number };

/** By its events, since to iterate over them costs several times as much as a small body itself. */
function collect(request: IncomingMessage, { most, share, idleMs }: Terms): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const pieces: Buffer[] = [];
    let bytes = 0;
    let isRefused = false;
    const source = {
      pause: () => void request.pause(),
      resume: () => {
        if (!isRefused) request.resume();
      },
    };
    const take = (piece: Buffer) => {
      bytes += piece.length;
      if (bytes > most.bytes) refuse(tooLarge(most));
      else if (pieces.push(piece) > MOST_PIECES) refuse(tooManyPieces());
      else if (!share.take(piece.length + PIECE_BYTES)) refuse(tooManyBodies());
      else {
        idle.refresh();
        paceReading(source, piece.length);
      }
    };
    const refuse = (reason: ApiError) => {
      isRefused = true;
      request.off("data", take).pause();
      clearTimeout(idle);
      for (const piece of pieces) free(piece);
      pieces.length = 0;
      share.giveAllBack();
      reject(reason);
    };
    const idle = setTimeout(() => refuse(tooSlow()), idleMs);
    request.on("data", take);
    request.on("end", () => {
      clearTimeout(idle);
      resolve(whole(pieces, bytes));
    });
    request.on("error", (fault) => refuse(clientLeft(fault)));
  });
}

function whole(pieces: readonly Buffer[], bytes: number): Buffer {
  if (pieces.length === 1) return pieces[0]!;
  const body = Buffer.concat(pieces, bytes);
  for (const piece of pieces) free(piece);
  return body;
}

/** Gives the memory back at once: V8 looks for what nobody holds only when something new is made, which a flood that ends is not. */
function free({ buffer, length }: Buffer): void {
  if (buffer instanceof ArrayBuffer && buffer.byteLength === length) buffer.transfer(0);
}

function refuseEncoded({ headers }: IncomingMessage): void {
  const encoding = headers["content-encoding"];
  if (!encoding || encoding === "identity") return;
  throw new ApiError(415, "UNSUPPORTED_MEDIA_TYPE", `A body in the encoding "${encoding}" cannot be read.`, {
    hint: "Send it without Content-Encoding.",
    headers: { "Accept-Encoding": "identity" },
  });
}

function tooLarge({ bytes, hint }: BodyLimit): ApiError {
  return new ApiError(413, "PAYLOAD_TOO_LARGE", `The body is larger than ${bytes} bytes.`, {
    hint: ["Send it in several requests.", hint].join(" ").trimEnd(),
  });
}

function tooManyBodies(): ApiError {
  return unavailable("Too many request bodies are being received at once; try again shortly.");
}

/** It would not fit either if it were the only one. */
function tooMuchMade(): ApiError {
  return new ApiError(413, "PAYLOAD_TOO_LARGE", "To read the body takes more memory than there is for bodies.", {
    hint: "Send it in several requests.",
  });
}

/** Whoever goes on like this is not read any longer. */
const FAREWELL = { Connection: "close" };

function tooSlow(): ApiError {
  return new ApiError(408, "TIMEOUT", "The body did not arrive in time.", { headers: FAREWELL });
}

function tooManyPieces(): ApiError {
  return new ApiError(413, "PAYLOAD_TOO_LARGE", `The body comes in more than ${MOST_PIECES} pieces.`, {
    hint: "Send it in larger chunks.",
    headers: FAREWELL,
  });
}
