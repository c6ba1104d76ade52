import jwt from "jsonwebtoken";
import type { ApiError } from "../errors.ts";
import { type Claims, checkClaims, parseClaims, timeOf } from "./claims.ts";
import type { TokenKeys } from "./keys.ts";
import { isSurelyOurs, keysNamed } from "./signature.ts";
import { type Beside, unauthorized } from "./unauthorized.ts";

export type VerifiedToken = {
  readonly claims: Claims;
  /** The claims as the token spells them. */
  readonly claimsText: string;
  /** Seconds since 1970; null for a token that does not end. */
  readonly expiresAt: number | null;
};

const EMPTY = "Empty JWT is sent in Authorization header";

type Terms = { readonly keys: TokenKeys; readonly audience: string | null };

export function signToken(claims: object, { algorithm, signing }: TokenKeys, { timestamp = true } = {}): string {
  return jwt.sign(claims, signing.key, { algorithm, keyid: signing.id, noTimestamp: !timestamp });
}

/** By the key that the token names, or else by each of ours. Throws what `jsonwebtoken` does. */
export function verifySignature(token: string, { algorithm, verifying }: TokenKeys, options: jwt.VerifyOptions) {
  const head = jwt.decode(token, { complete: true })?.header;
  // RFC 7515 §4.1.11: who must understand what it names is to refuse it otherwise, and we understand nothing of the kind.
  if (head?.crit !== undefined) throw new jwt.JsonWebTokenError("critical header");
  const keys = keysNamed(head?.kid, verifying);
  const last = keys.length - 1;
  for (const { key } of keys.slice(0, last)) {
    try {
      return jwt.verify(token, key, { ...options, algorithms: [algorithm] });
    } catch (error) {
      if ((error as Error).message !== "invalid signature") throw error;
    }
  }
  return jwt.verify(token, keys[last]!.key, { ...options, algorithms: [algorithm] });
}

/** Refuses what was not signed by us, or is not to be used here and now. */
export function verifyToken(
  token: string,
  { keys, audience }: Terms,
  databaseTime: number | null = null,
): VerifiedToken {
  if (token === "") throw invalidToken(EMPTY, EMPTY);
  try {
    if (!isSurelyOurs(token, keys)) verifySignature(token, keys, { ignoreExpiration: true, ignoreNotBefore: true });
  } catch (error) {
    throw refusal(token, keys, error);
  }
  const claimsText = Buffer.from(token.split(".")[1]!, "base64url").toString("utf8");
  const claims = readableClaims(claimsText);
  if (claims.type === "refresh") {
    throw invalidToken(
      "A refresh token identifies nobody; exchange it at /auth/refresh for an access token.",
      "A refresh token identifies nobody",
    );
  }
  checkClaims(claims, { audience, databaseTime });
  return { claims, claimsText, expiresAt: timeOf(claims, "exp") };
}

/** Without the character zero: Postgres's jsonb has no place for it, so no policy could ever read it. */
function readableClaims(text: string): Claims {
  const claims = parseClaims(text);
  if (claims && !text.includes("\\u0000")) return claims;
  throw unauthorized("VERIFICATION_FAILED", "The token's claims cannot be read.", "Parsing claims failed");
}

/** Which of these it is, PostgREST tells in these words. */
function refusal(token: string, { algorithm }: TokenKeys, cause: unknown): ApiError {
  if (!(cause instanceof jwt.JsonWebTokenError || cause instanceof SyntaxError)) {
    return unauthorized("VERIFICATION_FAILED", "The token could not be verified.", "JWT couldn't be decoded", {
      cause,
    });
  }
  const message = "The token is malformed, or was not signed by this service.";
  const parts = token.split(".").length;
  if (parts !== 3) return invalidToken(message, `Expected 3 parts in JWT; got ${parts}`, { cause });
  const alg = algorithmOf(token);
  if (alg === undefined) return invalidToken(message, "JWT cryptographic operation failed", { cause });
  if (alg === "none") {
    const details = "JWT is unsecured but expected 'alg' was not 'none'";
    return invalidToken(message, "Wrong or unsupported encoding algorithm", { details, cause });
  }
  const details = `${alg === algorithm ? "None of the keys was able" : "No suitable key was found"} to decode the JWT`;
  return invalidToken(message, "No suitable key or wrong key type", { details, cause });
}

/** What the head of a token names, whatever stands behind it. */
function algorithmOf(token: string): unknown {
  try {
    return JSON.parse(Buffer.from(token.split(".")[0]!, "base64url").toString("utf8"))?.alg;
  } catch {
    return undefined;
  }
}

function invalidToken(message: string, description: string, beside: Beside = {}): ApiError {
  return unauthorized("INVALID_TOKEN", message, description, beside);
}
