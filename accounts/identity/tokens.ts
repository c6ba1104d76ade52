import { createHmac, timingSafeEqual } from "node:crypto";
import { type Config, withClaimAt } from "#config";
import { isValidSignature, memoizeRecent, signContent } from "#runtime";
import { isJsonObject } from "#runtime/json";
import { type Claims, checkClaims, parseClaims, readTimeClaim } from "./claims.ts";
import { CredentialError, type CredentialErrorReason } from "./credential-error.ts";
import type { IssuingKeys, TokenKey, TokenKeys } from "./token-keys.ts";

type VerifiedToken = {
  readonly claims: Claims;
  /** The claims as written in the token. */
  readonly claimsText: string;
  /** Seconds since 1970; null for a token that does not expire. */
  readonly expiresAt: number | null;
  /** The id of the key that verified it. */
  readonly keyId: string;
};

const EMPTY_TOKEN = "Empty JWT is sent in Authorization header";

type TokenRequirements = {
  readonly keys: TokenKeys;
  readonly audience: string | null;
  /** The issuer that tokens signed with keys of other parties must name; null accepts any. */
  readonly issuer?: string | null;
};

/** The error for a token that cannot be verified. */
export class TokenError extends Error {
  override name = "TokenError";
  readonly isExpired: boolean;

  constructor(message: string, { isExpired = false } = {}) {
    super(message);
    this.isExpired = isExpired;
  }
}

export function signToken(claims: object, { signing }: IssuingKeys, { timestamp = true, type = "JWT" } = {}): string {
  const header = { alg: signing.algorithm, typ: type, kid: signing.id };
  const issuedAt = timestamp && !("iat" in claims) ? { iat: Math.floor(Date.now() / 1000) } : {};
  const content = `${encodePart(header)}.${encodePart({ ...claims, ...issuedAt })}`;
  return `${content}.${signContent(content, signing.algorithm, signing.key)}`;
}

function encodePart(value: object): string {
  return Buffer.from(JSON.stringify(value)).toString("base64url");
}

/** Verifies the signature and the expiry, and returns the claims; throws `TokenError`. */
export function verifySignature(token: string, keys: TokenKeys, { clockTolerance = 0 } = {}): Claims {
  if (!findUsualKey(token, keys)) findVerifyingKey(token, keys);
  const claims = parseClaims(claimsTextOf(token));
  if (!claims) throw new TokenError("invalid token");
  const expiresAt = readTimeClaim(claims, "exp");
  if (expiresAt !== null && expiresAt + clockTolerance <= Date.now() / 1000)
    throw new TokenError("jwt expired", { isExpired: true });
  return claims;
}

/** Returns the key that made the token's signature: one with the key id and algorithm that the token names. */
function findVerifyingKey(token: string, { verifying }: TokenKeys): TokenKey {
  const { header, content, signature } = splitToken(token);
  // RFC 7515 §4.1.11: tokens with critical extensions must be rejected by verifiers that do not support them.
  if (header.crit !== undefined) throw new TokenError("critical header");
  const suitable = suitableKeys(header, verifying);
  if (suitable.length === 0) throw new TokenError("invalid algorithm");
  const key = suitable.find(({ key, algorithms }) => {
    const algorithm = algorithms.find((name) => name === header.alg);
    return algorithm !== undefined && isValidSignature(signature, content, algorithm, key);
  });
  if (key) return key;
  throw new TokenError("invalid signature");
}

function suitableKeys({ alg, kid }: Readonly<Record<string, unknown>>, keys: readonly TokenKey[]): readonly TokenKey[] {
  return keysWithId(kid, keys).filter(({ algorithms }) => algorithms.some((name) => name === alg));
}

function splitToken(token: string) {
  const match = JWT_PATTERN.exec(token);
  const header = match && parseHeader(match[1]!);
  if (!header) throw new TokenError("jwt malformed");
  const end = token.lastIndexOf(".");
  return { header, content: token.slice(0, end), signature: token.slice(end + 1) };
}

/** Returns null if it is not a JSON object. */
function parseHeader(encoded: string): Readonly<Record<string, unknown>> | null {
  try {
    const header: unknown = JSON.parse(Buffer.from(encoded, "base64url").toString("utf8"));
    return isJsonObject(header) ? header : null;
  } catch {
    return null;
  }
}

/** Returns the algorithm that the header names; null if it cannot be read. */
export function readTokenAlgorithm(token: string): string | null {
  const alg = parseHeader(token.split(".")[0]!)?.alg;
  return typeof alg === "string" ? alg : null;
}

function claimsTextOf(token: string): string {
  return Buffer.from(token.split(".")[1]!, "base64url").toString("utf8");
}

/** Verifies the signature, the times, the audience and the issuer; throws 401. */
export function verifyToken(
  token: string,
  { keys, audience, issuer = null }: TokenRequirements,
  databaseTime: number | null = null,
): VerifiedToken {
  if (token === "") throw new CredentialError("tokenEmpty", EMPTY_TOKEN, EMPTY_TOKEN);
  const { id: keyId, isForeign } = findUsualKey(token, keys) ?? verifyingKeyOrThrow(token, keys);
  const claimsText = claimsTextOf(token);
  const claims = parseTokenClaims(claimsText);
  if (claims.type === "refresh") {
    throw new CredentialError(
      "tokenOfOtherType",
      "A refresh token identifies nobody; exchange it at /auth/refresh for an access token.",
      "A refresh token identifies nobody",
    );
  }
  if (claims.type === "id" && !isForeign) {
    throw new CredentialError(
      "tokenOfOtherType",
      "An ID token says who signed in; send the access token.",
      "An ID token is no access token",
    );
  }
  checkClaims(claims, { audience, issuer: isForeign ? issuer : null, databaseTime });
  return { claims, claimsText, expiresAt: readTimeClaim(claims, "exp"), keyId };
}

function verifyingKeyOrThrow(token: string, keys: TokenKeys): TokenKey {
  try {
    return findVerifyingKey(token, keys);
  } catch (error) {
    throw signatureError(token, keys, error);
  }
}

/** True if the token was refused for its key, which another version of a key set may contain. */
export function isUnknownKeyError(error: unknown): boolean {
  return error instanceof CredentialError && error.reason === "keyUnknown";
}

/** Rejects NUL characters, which jsonb cannot store, so that no policy could read the claims. */
function parseTokenClaims(text: string): Claims {
  const claims = parseClaims(text);
  if (claims && !text.includes("\\u0000")) return claims;
  throw new CredentialError("claimsInvalid", "The token's claims cannot be read.", "Parsing claims failed");
}

/** Distinguishes the same errors as PostgREST, with its texts. */
function signatureError(token: string, { verifying }: TokenKeys, cause: unknown): CredentialError {
  const error = (reason: CredentialErrorReason, description: string, details?: string) => {
    const message = "The token is malformed, or was not signed by this service.";
    return new CredentialError(reason, message, description, { ...(details !== undefined && { details }), cause });
  };
  const parts = token.split(".").length;
  if (parts !== 3) return error("tokenMalformed", `Expected 3 parts in JWT; got ${parts}`);
  const header = parseHeader(token.split(".")[0]!);
  if (header?.alg === undefined) return error("signatureInvalid", "JWT cryptographic operation failed");
  if (header.alg === "none") {
    const details = "JWT is unsecured but expected 'alg' was not 'none'";
    return error("signatureInvalid", "Wrong or unsupported encoding algorithm", details);
  }
  const isKnown = suitableKeys(header, verifying).length > 0;
  const details = `${isKnown ? "None of the keys was able" : "No suitable key was found"} to decode the JWT`;
  return error("keyUnknown", "No suitable key or wrong key type", details);
}

const JWT_PATTERN = /^([\w-]+)\.[\w-]+\.[\w-]+$/;

const UNUSUAL_HEADER = { isUsual: false, id: undefined };
const USUAL_HEADER_NAMES = ["alg", "typ", "kid"];
const MAX_CACHED_HEADERS = 100;

/** The header is memoized because all tokens of one issuer have the same header. */
const readTokenHeader = memoizeRecent(
  MAX_CACHED_HEADERS,
  (encoded: string): { readonly isUsual: boolean; readonly id: unknown } => {
    const header = parseHeader(encoded);
    if (!header) return UNUSUAL_HEADER;
    const isUsual = header.alg === "HS256" && Object.keys(header).every((name) => USUAL_HEADER_NAMES.includes(name));
    return { isUsual, id: header.kid };
  },
);

/**
 * Returns the keys with the id, or else all keys: another issuer with the same secret may use other ids, or none. A key that
 * its issuer has named is not used for other ids.
 */
function keysWithId(id: unknown, keys: readonly TokenKey[]): readonly TokenKey[] {
  if (id === undefined) return keys;
  const matching = keys.filter((key) => key.id === id);
  return matching.length > 0 ? matching : keys.filter(({ isNamed }) => !isNamed);
}

/** A fast path for HS256 tokens: returns the key that made the token's signature. Null means unknown, or another algorithm. */
export function findUsualKey(token: string, { verifying }: TokenKeys): TokenKey | null {
  const header = JWT_PATTERN.exec(token)?.[1];
  const { isUsual, id } = header === undefined ? UNUSUAL_HEADER : readTokenHeader(header);
  if (!isUsual) return null;
  const end = token.lastIndexOf(".");
  const signed = token.slice(0, end);
  const signature = Buffer.from(token.slice(end + 1));
  const found = keysWithId(id, verifying).find(({ key, algorithms }) => {
    if (!algorithms.includes("HS256")) return false;
    const expected = Buffer.from(createHmac("sha256", key).update(signed).digest("base64url"));
    return signature.length === expected.length && timingSafeEqual(signature, expected);
  });
  return found ?? null;
}

type RoleKeySettings = Pick<Config, "jwtIssuer" | "jwtRoleClaim">;

/** Returns the API key of a role. It has no time of issue, so it is always the same text and can be printed again at any time. */
export function makeRoleKey(role: string, keys: IssuingKeys, { jwtIssuer, jwtRoleClaim }: RoleKeySettings): string {
  return signToken(withClaimAt({ iss: jwtIssuer, role }, jwtRoleClaim, role), keys, { timestamp: false });
}
