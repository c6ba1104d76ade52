import { isJsonObject, parseJsonExactly, toJavaScriptNumber } from "#runtime/json";
import { CredentialError } from "./credential-error.ts";

/** Numbers that JavaScript would round are of type `ExactNumber`. */
export type Claims = Readonly<Record<string, unknown>>;

/** The accepted difference between the clocks of the issuer and of this gateway, in seconds. */
export const CLOCK_SKEW_SECONDS = 30;

type ClaimsRequirements = {
  /** Null accepts any audience. */
  readonly audience: string | null;
  /** Null accepts any issuer, or none. */
  readonly issuer: string | null;
  /** The time by the database's clock, which sets `iat` in our tokens, in seconds since 1970; null if unknown. */
  readonly databaseTime: number | null;
};

/** Returns null if the text is not a JSON object. */
export function parseClaims(text: string): Claims | null {
  try {
    const claims = parseJsonExactly(text);
    return isJsonObject(claims) ? claims : null;
  } catch {
    return null;
  }
}

/** The text of request.jwt.claims. Other ways to serialize the claims would round numbers. */
export function serializeClaims(claims: Claims): string {
  return JSON.stringify(claims);
}

/** Checks times, audience and issuer of a verified token; like PostgREST, it accepts a token without times and audience. */
export function checkClaims(claims: Claims, { audience, issuer, databaseTime }: ClaimsRequirements): void {
  const [expiresAt, notBefore, issuedAt] = [
    readTimeClaim(claims, "exp"),
    readTimeClaim(claims, "nbf"),
    readTimeClaim(claims, "iat"),
  ];
  const now = Math.floor(Date.now() / 1000);
  const latest = Math.max(now, databaseTime ?? now) + CLOCK_SKEW_SECONDS;
  if (expiresAt !== null && hasExpired(expiresAt)) {
    const message = "The token has expired; refresh it or sign in again.";
    throw new CredentialError("tokenExpired", message, "JWT expired", invalidBy(now - expiresAt));
  }
  if (notBefore !== null && notBefore > latest) {
    throw notYetValid("The token is not valid yet.", "JWT not yet valid", notBefore - now);
  }
  if (issuedAt !== null && issuedAt > latest) {
    const cause =
      databaseTime === null
        ? "by the clock of this gateway: either that is behind, or the clock of the token's issuer is ahead"
        : "by the clocks of this gateway and of the database: the clock of the token's issuer is ahead";
    throw notYetValid(
      `The token was issued ${issuedAt - now} seconds from now ${cause}.`,
      "JWT issued at future",
      issuedAt - now,
    );
  }
  if (!matchesAudience(claims.aud ?? [], audience)) {
    throw claimsInvalid("The token was made for another audience.", "JWT not in audience");
  }
  if (issuer !== null && claims.iss !== issuer) {
    throw claimsInvalid("The token was made by another issuer.", "JWT not from the expected issuer");
  }
}

/** True if the token may be valid by a clock that is ahead of this one. */
export function isTooEarlyError(error: unknown): boolean {
  return error instanceof CredentialError && error.reason === "tokenNotYetValid";
}

/** `expires` is in seconds since 1970. */
export function hasExpired(expires: number): boolean {
  return millisecondsValid(expires) <= 0;
}

/** Returns the remaining validity of a token that expires at `expires`, in seconds since 1970. */
export function millisecondsValid(expires: number): number {
  return (expires + CLOCK_SKEW_SECONDS + 1) * 1000 - Date.now();
}

/** Returns seconds since 1970; null if the claim is missing. */
export function readTimeClaim(claims: Claims, name: "exp" | "nbf" | "iat"): number | null {
  const value = claims[name] ?? null;
  const time = toJavaScriptNumber(value);
  if (value === null || time !== null) return time;
  throw claimsInvalid(`The token's claim "${name}" must be a number.`, `The JWT '${name}' claim must be a number`);
}

function matchesAudience(claim: unknown, audience: string | null): boolean {
  const audiences: readonly unknown[] = Array.isArray(claim) ? claim : [claim];
  if (!audiences.every((each) => typeof each === "string")) {
    throw claimsInvalid(
      'The token\'s claim "aud" must be a text or a list of texts.',
      "The JWT 'aud' claim must be a string or an array of strings",
    );
  }
  return audience === null || audiences.length === 0 || audiences.includes(audience);
}

function notYetValid(message: string, description: string, seconds: number): CredentialError {
  return new CredentialError("tokenNotYetValid", message, description, invalidBy(seconds));
}

/** The text is PostgREST's; it shows how far two clocks are apart. */
function invalidBy(seconds: number): { readonly details: string } {
  return { details: `Invalid by ${Math.floor(seconds)} seconds` };
}

function claimsInvalid(message: string, description: string): CredentialError {
  return new CredentialError("claimsInvalid", message, description);
}
