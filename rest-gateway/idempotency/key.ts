import type { IncomingHttpHeaders } from "node:http";
import { ApiError } from "../../engine/errors.ts";

const KEY = /^[\x21-\x7e]{1,255}$/;

/** `Idempotency-Key: 8e03978e-40d5-43e8-bc93-6894a57f9324`, as it is, quotes included; null without one. */
export function readIdempotencyKey(headers: IncomingHttpHeaders): string | null {
  const key = headers["idempotency-key"];
  if (key === undefined) return null;
  if (typeof key === "string" && KEY.test(key)) return key;
  throw new ApiError(400, "INVALID_IDEMPOTENCY_KEY", "An Idempotency-Key has 1 to 255 visible ASCII characters.", {
    hint: "Make up a random one, such as a UUID, for each change, and send it with every attempt at that change.",
  });
}
