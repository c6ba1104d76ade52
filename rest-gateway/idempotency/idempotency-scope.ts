import type { Caller } from "../../engine/caller/caller.ts";

/** Claims that differ between two tokens of the same user. */
const TOKEN_SPECIFIC_CLAIMS = new Set(["iat", "exp", "nbf", "jti"]);

/**
 * The scope of a caller's idempotency keys: the same for all tokens of a user, so that a retry may use a new token.
 * Tokens without a subject share a scope if their other claims are equal; there, only the key separates responses.
 */
export function idempotencyScopeOf({ role, claims }: Caller): string {
  const { sub } = claims;
  if (typeof sub === "string" && sub !== "") return JSON.stringify([role, sub]);
  const lasting = Object.entries(claims).filter(([name]) => !TOKEN_SPECIFIC_CLAIMS.has(name));
  return JSON.stringify([role, Object.fromEntries(lasting.sort(([a], [b]) => (a < b ? -1 : 1)))]);
}
