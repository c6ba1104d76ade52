import { ApiError } from "../../engine/errors.ts";
import { toChannelReason } from "../../http/error-bodies.ts";
import { toHttpError } from "../../http/http-error.ts";

/** Why a join is rejected or a channel is closed, as Supabase words it: `Code: text` in a reply, the text alone when a channel closes. */
export class ChannelError extends Error {
  readonly text: string;

  constructor(code: string, text: string) {
    super(`${code}: ${text}`);
    this.name = "Refusal";
    this.text = text;
  }
}

/** The reason in a reply, for any error. */
export function errorReason(error: unknown): string {
  return error instanceof ChannelError ? error.message : toChannelReason(toHttpError(error)).reason;
}

/** What is wrong with a token. */
export function toTokenError(error: unknown, token: string): unknown {
  if (!(error instanceof ApiError) || error.kind !== "unauthenticated") return error;
  if (error.code === "INVALID_TOKEN" && error.message.startsWith("The token is malformed")) {
    return token.split(".").length === 3
      ? new ChannelError("JwtSignatureError", "Failed to validate JWT signature")
      : malformedToken();
  }
  const expiresAt = error.code === "TOKEN_EXPIRED" ? readExpiry(token) : null;
  if (expiresAt !== null && isExpired(expiresAt)) return expiredToken(expiresAt);
  return new ChannelError("InvalidJWTToken", error.message);
}

export function malformedToken(): ChannelError {
  return new ChannelError("MalformedJWT", "The token provided is not a valid JWT");
}

/** Requests accept tokens a little longer, as clocks differ; an open channel ends on time. */
export function isExpired(expiresAt: number): boolean {
  return expiresAt * 1000 <= Date.now();
}

export function expiredToken(expiresAt: number): ChannelError {
  return new ChannelError(
    "InvalidJWTToken",
    `Token has expired ${Math.floor(Date.now() / 1000 - expiresAt)} seconds ago`,
  );
}

/** Of a token whose signature is valid. */
function readExpiry(token: string): number | null {
  const claims = JSON.parse(Buffer.from(token.split(".")[1] ?? "", "base64url").toString("utf8"));
  return typeof claims?.exp === "number" ? claims.exp : null;
}
