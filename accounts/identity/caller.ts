import { clientNetwork } from "#runtime";
import { type Claims, parseClaims } from "./claims.ts";

/** An authenticated or anonymous caller: the database role of its statements, and the claims that policies read. */
export type Caller = {
  /** `key` is a program with a key of `auth.api_keys`; `session` is a browser, which sends its session cookie automatically. */
  readonly kind: "anonymous" | "known" | "key" | "session";
  readonly role: string;
  /** The claims for decisions in this process. They are never serialized again for Postgres. */
  readonly claims: Claims;
  /** The claims as the credential spells them: the value of request.jwt.claims in SQL. */
  readonly claimsText: string;
  /** Seconds since 1970. */
  readonly expiresAt: number | null;
  /** The id of the key that verified the token; absent without a token. */
  readonly keyId?: string;
};

export const ADMIN_ROLE = "admin";

/** True for the role that passes all ownership checks; its other rights are defined in SQL. */
export function isAdministrator({ role }: Pick<Caller, "role">): boolean {
  return role === ADMIN_ROLE;
}

/** True if an actor acts as the caller (RFC 8693, 4.1): an administrator who views rows as that role or user. */
export function isActedAs({ claims }: Pick<Caller, "claims">): boolean {
  return claims.act !== undefined;
}

/** Returns the caller whose claims, including the role, come from the database. */
export function callerFromClaims({
  kind,
  claimsText,
  expiresAt,
}: Pick<Caller, "kind" | "claimsText" | "expiresAt">): Caller {
  const claims = parseClaims(claimsText);
  if (typeof claims?.role !== "string") throw new Error("The database states claims without a role");
  return Object.freeze<Caller>({ kind, role: claims.role, claims, claimsText, expiresAt });
}

/**
 * Identifies a caller across requests, for limits and shares: the user, or the API key. A token without a subject may be
 * shared, for example by all visitors of a site, so the client's address identifies its caller.
 */
export function callerKey(claims: Claims | null, address: () => string | null): string {
  const { sub, api_key: key } = claims ?? {};
  if (typeof sub === "string" && sub !== "") return `user ${sub}`;
  return typeof key === "string" ? `key ${key}` : `address ${clientNetwork(address())}`;
}

/**
 * Identifies the callers who share a quota. Anyone can create anonymous accounts, so their callers count by address, like
 * callers without an account.
 */
export function quotaKey({ claims }: Pick<Caller, "claims">, address: () => string | null): string {
  return callerKey(claims.is_anonymous === true ? null : claims, address);
}

/** Returns the caller of a key in `auth.api_keys`; null if the key is unknown, revoked or expired. */
export type FindApiKey = (key: string) => Caller | null | Promise<Caller | null>;
