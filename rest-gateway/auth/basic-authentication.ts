import type { PasswordCredentials } from "../../engine/caller/caller.ts";
import { ApiError } from "../../engine/errors.ts";
import type { GatewayRequest } from "../http.ts";
import { clientInfoOf } from "./client-info.ts";

const CHALLENGE = { "WWW-Authenticate": 'Basic realm="content-service", charset="UTF-8"' };
const LOOPBACK = /^(127\.|::1$|::ffff:127\.)/;

/** `Basic base64(name:password)` (RFC 7617); null for another scheme. Requires HTTPS, because it sends the password. */
export function readBasicCredentials(request: GatewayRequest): PasswordCredentials | null {
  const { authorization = "" } = request.headers;
  if (!/^\s*basic(\s|$)/i.test(authorization)) return null;
  const [, encoded = ""] = authorization.trim().split(/\s+/);
  const { address, isSecure } = request.connection();
  if (!isSecure && !LOOPBACK.test(address ?? "")) {
    throw new ApiError(403, "PERMISSION_DENIED", "Basic authentication requires HTTPS.");
  }
  const text = Buffer.from(encoded, "base64").toString("utf8");
  const colon = text.indexOf(":");
  if (colon < 1 || text.includes("\0")) throw malformedCredentials();
  return { username: text.slice(0, colon), password: text.slice(colon + 1), clientInfo: clientInfoOf(request) };
}

/** Adds the Basic challenge to a 401 error. */
export function withBasicChallenge(error: unknown): unknown {
  return error instanceof ApiError && error.status === 401 ? error.withHeaders(CHALLENGE) : error;
}

function malformedCredentials(): ApiError {
  const message = "The Basic credentials are malformed.";
  return new ApiError(401, "INVALID_CREDENTIALS", message, { headers: CHALLENGE });
}
