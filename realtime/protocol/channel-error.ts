import { ApiError, toApiError, toChannelReason } from "../../engine/errors.ts";

/** Why a channel cannot be had, or goes on no longer, in the words of Supabase: `Code: text` in a reply, the text alone at the end. */
export class ChannelError extends Error {
  readonly text: string;

  constructor(code: string, text: string) {
    super(`${code}: ${text}`);
    this.name = "Refusal";
    this.text = text;
  }
}

/** The reason for a channel that could not be joined, whatever was thrown. */
export function errorReason(error: unknown): string {
  return error instanceof ChannelError ? error.message : toChannelReason(toApiError(error)).reason;
}

/** What is wrong with a token. */
export function toTokenError(error: unknown, token: string): unknown {
  if (!(error instanceof ApiError) || error.status !== 401) return error;
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

/** Tokens are accepted a little longer, for clocks that differ; a channel, which has seen the token good, ends on time. */
export function isExpired(expiresAt: number): boolean {
  return expiresAt * 1000 <= Date.now();
}

export function expiredToken(expiresAt: number): ChannelError {
  return new ChannelError(
    "InvalidJWTToken",
    `Token has expired ${Math.floor(Date.now() / 1000 - expiresAt)} seconds ago`,
  );
}

/** Of a token whose signature was found good. */
function readExpiry(token: string): number | null {
  const claims = JSON.parse(Buffer.from(token.split(".")[1] ?? "", "base64url").toString("utf8"));
  return typeof claims?.exp === "number" ? claims.exp : null;
}
