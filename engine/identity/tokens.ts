import { createHmac, timingSafeEqual } from "node:crypto";
import jwt from "jsonwebtoken";
import { memoizeRecent } from "../cache/memoize.ts";
import { withClaimAt } from "../config/claim-path.ts";
import type { Config } from "../config/config.ts";
import type { ApiError } from "../errors.ts";
import { isJsonObject } from "../json/json-values.ts";
import { type Claims, checkClaims, parseClaims, readTimeClaim } from "./claims.ts";
import type { TokenKey, TokenKeys } from "./token-keys.ts";
import { type UnauthorizedDetails, unauthorized } from "./unauthorized.ts";

export type VerifiedToken = {
  readonly claims: Claims;
  /** The claims as written in the token. */
  readonly claimsText: string;
  /** Seconds since 1970; null for a token that does not expire. */
  readonly expiresAt: number | null;
};

const EMPTY_TOKEN = "Empty JWT is sent in Authorization header";

type TokenRequirements = { readonly keys: TokenKeys; readonly audience: string | null };

export function signToken(claims: object, { algorithm, signing }: TokenKeys, { timestamp = true } = {}): string {
  return jwt.sign(claims, signing.key, { algorithm, keyid: signing.id, noTimestamp: !timestamp });
}

/** Verifies with the key that the token names, or else with each key. Throws the errors of `jsonwebtoken`. */
export function verifySignature(token: string, { algorithm, verifying }: TokenKeys, options: jwt.VerifyOptions) {
  const header = jwt.decode(token, { complete: true })?.header;
  // RFC 7515 §4.1.11: tokens with critical extensions must be rejected by verifiers that do not support them.
  if (header?.crit !== undefined) throw new jwt.JsonWebTokenError("critical header");
  const keys = keysWithId(header?.kid, verifying);
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

/** Verifies the signature, the times and the audience; throws 401. */
export function verifyToken(
  token: string,
  { keys, audience }: TokenRequirements,
  databaseTime: number | null = null,
): VerifiedToken {
  if (token === "") throw invalidToken(EMPTY_TOKEN, EMPTY_TOKEN);
  try {
    if (!hasVerifiedSignature(token, keys))
      verifySignature(token, keys, { ignoreExpiration: true, ignoreNotBefore: true });
  } catch (error) {
    throw signatureError(token, keys, error);
  }
  const claimsText = Buffer.from(token.split(".")[1]!, "base64url").toString("utf8");
  const claims = parseTokenClaims(claimsText);
  if (claims.type === "refresh") {
    throw invalidToken(
      "A refresh token identifies nobody; exchange it at /auth/refresh for an access token.",
      "A refresh token identifies nobody",
    );
  }
  checkClaims(claims, { audience, databaseTime });
  return { claims, claimsText, expiresAt: readTimeClaim(claims, "exp") };
}

/** Rejects NUL characters, which jsonb cannot store, so that no policy could read the claims. */
function parseTokenClaims(text: string): Claims {
  const claims = parseClaims(text);
  if (claims && !text.includes("\\u0000")) return claims;
  throw unauthorized("VERIFICATION_FAILED", "The token's claims cannot be read.", "Parsing claims failed");
}

/** Distinguishes the errors that PostgREST does, with its texts. */
function signatureError(token: string, { algorithm }: TokenKeys, cause: unknown): ApiError {
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

/** The `alg` of the token's header, even if the rest of the token is unreadable. */
function algorithmOf(token: string): unknown {
  try {
    return JSON.parse(Buffer.from(token.split(".")[0]!, "base64url").toString("utf8"))?.alg;
  } catch {
    return undefined;
  }
}

function invalidToken(message: string, description: string, extra: UnauthorizedDetails = {}): ApiError {
  return unauthorized("INVALID_TOKEN", message, description, extra);
}

const JWT_PATTERN = /^([\w-]+)\.[\w-]+\.[\w-]+$/;

const UNUSUAL_HEADER = { isUsual: false, id: undefined };
const USUAL_HEADER_NAMES = ["alg", "typ", "kid"];
const MAX_CACHED_HEADERS = 100;

/** All tokens of one issuer have the same header. */
const readTokenHeader = memoizeRecent(
  MAX_CACHED_HEADERS,
  (encoded: string): { readonly isUsual: boolean; readonly id: unknown } => {
    try {
      const header: unknown = JSON.parse(Buffer.from(encoded, "base64url").toString("utf8"));
      if (!isJsonObject(header)) return UNUSUAL_HEADER;
      const isUsual = header.alg === "HS256" && Object.keys(header).every((name) => USUAL_HEADER_NAMES.includes(name));
      return { isUsual, id: header.kid };
    } catch {
      return UNUSUAL_HEADER;
    }
  },
);

/** The key with the id, or else all keys: another issuer with the same secret may use other ids, or none. */
function keysWithId(id: unknown, keys: readonly TokenKey[]): readonly TokenKey[] {
  const matching = keys.filter((key) => key.id === id);
  return matching.length > 0 ? matching : keys;
}

/**
 * A fast path for our own HS256 tokens: true if the signature is valid. False means unknown: `jsonwebtoken`, which takes
 * several times as long, then decides and explains what is wrong.
 */
export function hasVerifiedSignature(token: string, { algorithm, verifying }: TokenKeys): boolean {
  if (algorithm !== "HS256") return false;
  const header = JWT_PATTERN.exec(token)?.[1];
  const { isUsual, id } = header === undefined ? UNUSUAL_HEADER : readTokenHeader(header);
  if (!isUsual) return false;
  const end = token.lastIndexOf(".");
  const signed = token.slice(0, end);
  const signature = Buffer.from(token.slice(end + 1));
  return keysWithId(id, verifying).some(({ key }) => {
    const expected = Buffer.from(createHmac("sha256", key).update(signed).digest("base64url"));
    return signature.length === expected.length && timingSafeEqual(signature, expected);
  });
}

type RoleKeySettings = Pick<Config, "jwtIssuer" | "jwtRoleClaim">;

/** The API key of a role. It has no time of issue, so it is always the same text and can be printed again at any time. */
export function makeRoleKey(role: string, keys: TokenKeys, { jwtIssuer, jwtRoleClaim }: RoleKeySettings): string {
  return signToken(withClaimAt({ iss: jwtIssuer, role }, jwtRoleClaim, role), keys, { timestamp: false });
}
