import type { Login } from "../../engine/caller/caller.ts";
import { ApiError } from "../../engine/errors.ts";
import type { GatewayRequest } from "../http.ts";
import { senderOf } from "./sender.ts";

const CHALLENGE = { "WWW-Authenticate": 'Basic realm="content-service", charset="UTF-8"' };
const LOOPBACK = /^(127\.|::1$|::ffff:127\.)/;

/** `Basic base64(name:password)` (RFC 7617); null for another scheme. Whoever listens could read it, so it takes HTTPS. */
export function readBasic(request: GatewayRequest): Login | null {
  const { authorization = "" } = request.headers;
  if (!/^\s*basic(\s|$)/i.test(authorization)) return null;
  const [, encoded = ""] = authorization.trim().split(/\s+/);
  const { address, isSecure } = request.connection();
  if (!isSecure && !LOOPBACK.test(address ?? "")) {
    throw new ApiError(403, "PERMISSION_DENIED", "A password is taken over HTTPS alone.");
  }
  const text = Buffer.from(encoded, "base64").toString("utf8");
  const colon = text.indexOf(":");
  if (colon < 1 || text.includes("\0")) throw unreadable();
  return { username: text.slice(0, colon), password: text.slice(colon + 1), sender: senderOf(request) };
}

/** The refusal of a name and a password, with the challenge that asks for others. */
export function challenged(error: unknown): unknown {
  return error instanceof ApiError && error.status === 401 ? error.withHeaders(CHALLENGE) : error;
}

function unreadable(): ApiError {
  const message = "The Basic credentials cannot be read.";
  return new ApiError(401, "INVALID_CREDENTIALS", message, { headers: CHALLENGE });
}
