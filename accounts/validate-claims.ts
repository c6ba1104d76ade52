import { isDeepStrictEqual } from "node:util";
import { type AsOwner, makeOwnerFunction } from "#postgres/database";
import { cacheLookups, type LookUpKeys } from "#runtime/concurrency";
import { isJsonObject } from "#runtime/json";
import type { Logger } from "#runtime/log";
import type { ValidateClaims } from "./identity/authenticator.ts";
import { type Claims, parseClaims, readTimeClaim, serializeClaims } from "./identity/claims.ts";
import { apiKeyInvalid, CredentialError } from "./identity/credential-error.ts";
import { isUuid } from "./random-secrets.ts";
import { makeSignerStateQuery } from "./signer-states.ts";
import { readUserId } from "./user-id.ts";

type ClaimsValidatorOptions = { readonly asOwner: AsOwner; readonly log: Pick<Logger, "warn"> };
/** The claim with the digest of the caller's session id. */
export const SESSION_CLAIM = "session_digest";

type AccountState = { user_id: string; state: "active" | "disabled" | "deleted"; tokens_valid_from: string | null };

/** The time for which a token can still be used after its account was disabled. */
const CACHE_MS = 4_000;
const MAX_CACHED = 10_000;

/**
 * Checks the claims of a token, API key or session again. They are invalid if the account was disabled or deleted, those of a
 * token also if the password or role has changed since it was issued, those of a session if it would have others now, and those
 * of a key or an application if the key or the grant has ended. A subject without an account here is accepted, because another
 * issuer may share the keys.
 */
export function makeValidateClaims({ asOwner, log }: ClaimsValidatorOptions): ValidateClaims {
  const queryAsOwner = makeOwnerFunction<AccountState>({
    asOwner,
    text: "select * from auth.account_states($1)",
    log,
    warning: "disabled users are not detected: this needs the owner's connection (OWNER_DATABASE_URL)",
  });
  const queryStates: LookUpKeys<AccountState> = async (userIds) => {
    const rows = await queryAsOwner([userIds]);
    return new Map(rows.map((row) => [row.user_id, row]));
  };
  const stateOf = cacheLookups(queryStates, { rememberedMs: CACHE_MS, max: MAX_CACHED });
  const sessionClaims = cacheLookups(makeSessionClaimsQuery({ asOwner, log }), {
    rememberedMs: CACHE_MS,
    max: MAX_CACHED,
  });
  const queryHolders = makeSignerStateQuery({
    asOwner,
    log,
    warning: "ended keys and grants are not detected: this needs the owner's connection (OWNER_DATABASE_URL)",
  });
  const holderState = cacheLookups(queryHolders, { rememberedMs: CACHE_MS, max: MAX_CACHED });

  /** The key is the id of the session and the time before which tokens of the account ended. */
  const isKept = cacheLookups(makeKeptSessionQuery({ asOwner, log }), { rememberedMs: CACHE_MS, max: MAX_CACHED });
  const hasEnded = cacheLookups(makeEndedSessionQuery({ asOwner, log }), { rememberedMs: CACHE_MS, max: MAX_CACHED });

  const validateAccount: ValidateClaims = (claims) => {
    const userId = readUserId(claims);
    if (userId === null) return null;
    const state = stateOf(userId);
    return state instanceof Promise ? state.then((account) => judge(claims, account)) : judge(claims, state);
  };

  /** A sign-in that ends all others keeps its own access token. */
  const judge = (claims: Claims, state: AccountState | null): ReturnType<ValidateClaims> => {
    const rejection = rejectionOf(claims, state);
    if (rejection?.reason !== "accountChanged") return rejection;
    const { sessionId } = signInOf(claims);
    if (sessionId === null) return rejection;
    const kept = isKept(`${sessionId} ${state!.tokens_valid_from}`);
    if (kept instanceof Promise) return kept.then((found) => (found ? null : rejection));
    return kept ? null : rejection;
  };

  const validateSession = async (claims: Claims, digest: string): Promise<CredentialError | null> => {
    const rejection = await validateAccount(claims);
    if (rejection) return rejection;
    const current = await sessionClaims(digest);
    if (current === null) return sessionEnded();
    return isLookedUp(claims) && !agrees(claims, current) ? accountChanged() : null;
  };

  const validateTokenSession = (claims: Claims, sessionId: string): ReturnType<ValidateClaims> => {
    const rejection = validateAccount(claims);
    const ended = hasEnded(sessionId);
    if (!(rejection instanceof Promise) && !(ended instanceof Promise)) return rejectSession(rejection, ended);
    return Promise.all([rejection, ended]).then(([awaited, isEnded]) => rejectSession(awaited, isEnded));
  };

  const validateSignIn: ValidateClaims = (claims) => {
    const { [SESSION_CLAIM]: digest, session_id: sessionId } = claims;
    if (typeof digest === "string") return validateSession(claims, digest);
    return isSessionId(sessionId) ? validateTokenSession(claims, sessionId) : validateAccount(claims);
  };

  const validateHolder = async (claims: Claims): Promise<CredentialError | null> => {
    const state = await holderState(holderOf(claims));
    if (state?.stands !== false) return validateSignIn(claims);
    return isOfKey(claims) ? apiKeyInvalid() : grantEnded();
  };

  const validateCaller: ValidateClaims = (claims) =>
    isOfKey(claims) || isOfGrant(claims) ? validateHolder(claims) : validateSignIn(claims);

  const validateBoth = async (claims: Claims, actor: Claims): Promise<CredentialError | null> =>
    (await validateCaller(claims)) ?? validateCaller(actor);

  // An actor (RFC 8693) may act as the caller only while its own token is valid.
  return (claims) => (isJsonObject(claims.act) ? validateBoth(claims, claims.act) : validateCaller(claims));
}

/** The sign-in that a credential belongs to: one by tokens, or of a browser. Both are null for other credentials. */
export type CredentialSignIn = { readonly sessionId: string | null; readonly sessionDigest: Buffer | null };

/** Reads `session_id` of tokens of /auth/v1, and `sid` of those of the documented routes, which have no other claim of a session. */
export function signInOf({ session_id, sid, [SESSION_CLAIM]: digest }: Claims): CredentialSignIn {
  const sessionId = session_id ?? sid;
  return {
    sessionId: isSessionId(sessionId) ? sessionId : null,
    sessionDigest: typeof digest === "string" ? Buffer.from(digest, "hex") : null,
  };
}

function isSessionId(claim: unknown): claim is string {
  return typeof claim === "string" && isUuid(claim);
}

/** Claims of a session or an API key, which each request looks up. Those of a token are fixed until it ends. */
function isLookedUp({ iat }: Claims): boolean {
  return iat === undefined;
}

function isOfKey(claims: Claims): boolean {
  return claims.api_key !== undefined && isLookedUp(claims);
}

/** A grant belongs to an account. Other issuers may name grants of their own. */
function isOfGrant(claims: Claims): boolean {
  return claims.oauth_grant_id !== undefined && readUserId(claims) !== null;
}

/** Returns true if the claims have the values that the session gives them now. An actor has some of them only. */
function agrees({ [SESSION_CLAIM]: _, ...claims }: Claims, current: Claims): boolean {
  return Object.entries(claims).every(([name, value]) => isDeepStrictEqual(value, current[name]));
}

/** Returns the claims by which `auth.signers` finds the key or the grant. */
function holderOf({ sub, user_id, role, api_key, client_id, oauth_grant_id }: Claims): string {
  return serializeClaims({ sub, user_id, role, api_key, client_id, oauth_grant_id });
}

/** A token that a refresh cannot replace belongs to a session that has ended. */
function rejectSession(rejection: CredentialError | null, isEnded: true | null): CredentialError | null {
  return isEnded && (rejection === null || rejection.reason === "accountChanged") ? sessionEnded() : rejection;
}

export function sessionEnded(): CredentialError {
  return new CredentialError("sessionEnded", "The session has ended; sign in again.", "The session has ended");
}

function accountChanged(): CredentialError {
  const message = "The account has changed; refresh the token or sign in again.";
  return new CredentialError("accountChanged", message, "JWT expired");
}

function grantEnded(): CredentialError {
  const message = "The user's grant to the application has ended; the application must ask for a new one.";
  return new CredentialError("grantEnded", message, "The grant has ended");
}

/** Looks up ended sign-ins by tokens; those that another issuer names are unknown, and have not ended. */
function makeEndedSessionQuery({ asOwner, log }: ClaimsValidatorOptions): LookUpKeys<true> {
  const queryAsOwner = makeOwnerFunction<{ id: string }>({
    asOwner,
    text: "select id from auth.ended_token_sessions($1) as id",
    log,
    warning: "ended sessions are not detected: this needs the owner's connection (OWNER_DATABASE_URL)",
  });
  return async (sessionIds) => {
    const rows = await queryAsOwner([sessionIds]);
    return new Map(rows.map(({ id }) => [id, true]));
  };
}

function makeKeptSessionQuery({ asOwner, log }: ClaimsValidatorOptions): LookUpKeys<true> {
  const queryAsOwner = makeOwnerFunction<{ id: string; kept_at: string }>({
    asOwner,
    text: "select * from auth.kept_token_sessions($1)",
    log,
    warning: "sessions that were kept are not recognized: this needs the owner's connection (OWNER_DATABASE_URL)",
  });
  return async (keys) => {
    const rows = await queryAsOwner([keys.map((key) => key.split(" ", 1)[0]!)]);
    return new Map(rows.map(({ id, kept_at }) => [`${id} ${kept_at}`, true]));
  };
}

/** Looks up the claims of live sessions by the digests of their ids; does not extend them. */
function makeSessionClaimsQuery({ asOwner, log }: ClaimsValidatorOptions): LookUpKeys<Claims> {
  const queryAsOwner = makeOwnerFunction<{ digest: string; claims: string }>({
    asOwner,
    text: `
      select pg_catalog.encode(session.id_hash, 'hex') as digest, auth.claims_of(session.user_id)::pg_catalog.text as claims
      from auth.live_sessions($1) as live (id_hash) join auth.sessions as session using (id_hash)`,
    log,
    warning: "ended sessions are not detected: this needs the owner's connection (OWNER_DATABASE_URL)",
  });
  return async (digests) => {
    const rows = await queryAsOwner([digests.map((digest) => Buffer.from(digest, "hex"))]);
    return new Map(rows.map(({ digest, claims }) => [digest, parseClaims(claims)!]));
  };
}

function rejectionOf(claims: Claims, state: AccountState | null): CredentialError | null {
  if (!state) return null;
  if (state.state === "disabled") {
    return new CredentialError("accountDisabled", "This account is disabled.", "The account is disabled");
  }
  if (state.state === "deleted") {
    return new CredentialError("accountDeleted", "This account was deleted.", "The account was deleted");
  }
  const issuedAt = readTimeClaim(claims, "iat");
  return issuedAt !== null && issuedAt < Number(state.tokens_valid_from) ? accountChanged() : null;
}
