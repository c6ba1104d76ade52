import { type ApiError, unavailable } from "#runtime";
import { HttpError } from "./http-error.ts";

/** The longest pause while a body is being received. */
export const BODY_IDLE_MS = 15_000;
/** The memory that a chunk takes besides its bytes. */
export const CHUNK_OVERHEAD_BYTES = 512;
/** The number is enough for the largest body in chunks of 640 bytes. */
export const MAX_CHUNKS = 16_384;

export function bodyTooLarge({ bytes, hint }: { readonly bytes: number; readonly hint?: string }): HttpError {
  return new HttpError(413, "PAYLOAD_TOO_LARGE", `The body is larger than ${bytes} bytes.`, {
    hint: ["Send it in several requests.", hint].join(" ").trimEnd(),
  });
}

export function tooManyBodies(): ApiError {
  return unavailable("Too many request bodies are being received at once; try again shortly.");
}

/** The connection closes, because the rest of the body is not read. */
const CLOSE_CONNECTION = { Connection: "close" };

export function bodyTooSlow(): HttpError {
  return new HttpError(408, "TIMEOUT", "The body did not arrive in time.", { headers: CLOSE_CONNECTION });
}

export function tooManyChunks(): HttpError {
  return new HttpError(413, "PAYLOAD_TOO_LARGE", `The body arrives in more than ${MAX_CHUNKS} chunks.`, {
    hint: "Send it in larger chunks.",
    headers: CLOSE_CONNECTION,
  });
}
