import jwt from "jsonwebtoken";
import type { ApiError } from "../errors.ts";
import { type Claims, checkClaims, hasExpired } from "./claims.ts";
import type { TokenKeys } from "./keys.ts";
import { unauthorized } from "./unauthorized.ts";

export type VerifiedToken = {
  readonly claims: Claims;
  /** The claims as the token spells them: what SQL sees in request.jwt.claims. */
  readonly claimsText: string;
  /** Seconds since 1970; null for a token that does not end. */
  readonly expiresAt: number | null;
};

type VerifierOptions = { readonly keys: TokenKeys; readonly audience: string | null; readonly cacheEntries: number };

/** Tokens together may take this many characters of the cache. */
const CACHE_CHARACTERS = 8_000_000;

/** A verifier that remembers whom it has verified; failures are never remembered. */
export function makeTokenVerifier({ keys, audience, cacheEntries }: VerifierOptions): (token: string) => VerifiedToken {
  const known = new Map<string, VerifiedToken>();
  let characters = 0;

  const forget = (token: string) => {
    if (known.delete(token)) characters -= token.length;
  };

  return (token) => {
    const remembered = known.get(token);
    if (remembered) {
      if (!isOver(remembered)) return remembered;
      forget(token);
    }
    const verified = verify(token, keys, audience);
    known.set(token, verified);
    characters += token.length;
    while (known.size > cacheEntries || characters > CACHE_CHARACTERS) forget(known.keys().next().value!);
    return verified;
  };
}

export function signToken(claims: object, { algorithm, signing }: TokenKeys, { timestamp = true } = {}): string {
  return jwt.sign(claims, signing, { algorithm, noTimestamp: !timestamp });
}

function isOver({ expiresAt }: VerifiedToken): boolean {
  return expiresAt !== null && hasExpired(expiresAt);
}

function verify(token: string, { algorithm, verifying }: TokenKeys, audience: string | null): VerifiedToken {
  if (token === "") throw invalidToken("Empty JWT is sent in Authorization header");
  try {
    jwt.verify(token, verifying, { algorithms: [algorithm], ignoreExpiration: true, ignoreNotBefore: true });
  } catch (error) {
    throw refusal(error);
  }
  const claimsText = Buffer.from(token.split(".")[1]!, "base64url").toString("utf8");
  const claims = parseClaims(claimsText);
  if (claims.type === "refresh") {
    throw invalidToken("A refresh token identifies nobody; exchange it at /auth/refresh for an access token.");
  }
  checkClaims(claims, { audience });
  return { claims, claimsText, expiresAt: typeof claims.exp === "number" ? claims.exp : null };
}

/** An object, and without the character zero: Postgres's jsonb has no place for it, so no policy could ever read it. */
function parseClaims(text: string): Claims {
  try {
    const claims: unknown = JSON.parse(text);
    if (typeof claims === "object" && claims !== null && !Array.isArray(claims) && !text.includes("\\u0000")) {
      return claims as Claims;
    }
  } catch {
    // Not JSON: refused below like the rest.
  }
  throw invalidToken("The token's claims cannot be read.");
}

function refusal(error: unknown): ApiError {
  if (error instanceof jwt.JsonWebTokenError || error instanceof SyntaxError) {
    return invalidToken("The token is malformed, or was not signed by this service.", error);
  }
  return unauthorized("VERIFICATION_FAILED", "The token could not be verified.", "JWT could not be verified", error);
}

function invalidToken(message: string, cause?: unknown): ApiError {
  return unauthorized("INVALID_TOKEN", message, "invalid JWT", cause);
}
