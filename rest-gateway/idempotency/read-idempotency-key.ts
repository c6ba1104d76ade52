import type { IncomingHttpHeaders } from "node:http";
import { ApiError } from "../../engine/errors.ts";

const KEY_PATTERN = /^[\x21-\x7e]{1,255}$/;

/** `Idempotency-Key: 8e03978e-40d5-43e8-bc93-6894a57f9324`, unchanged, including quotes; null without the header. */
export function readIdempotencyKey(headers: IncomingHttpHeaders): string | null {
  const key = headers["idempotency-key"];
  if (key === undefined) return null;
  if (typeof key === "string" && KEY_PATTERN.test(key)) return key;
  throw new ApiError(400, "INVALID_IDEMPOTENCY_KEY", "An Idempotency-Key has 1 to 255 visible ASCII characters.", {
    hint: "Generate a random key, such as a UUID, for each change, and send the same key with each retry of that change.",
  });
}
