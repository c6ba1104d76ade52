import { type Ask, askSeldom } from "../ask-seldom.ts";
import { type Claims, timeOf } from "../caller/claims.ts";
import { unauthorized } from "../caller/unauthorized.ts";
import type { AsOwner } from "../database/as-owner.ts";
import type { ApiError } from "../errors.ts";
import type { Logger } from "../log.ts";
import { ownerQuestion } from "../owner-question.ts";
import { readUserId } from "./user-id.ts";

/** Why claims are no longer valid; null if they are valid. */
export type ClaimsRejection = ApiError | null;

/** Checks whether claims are still valid. Synchronous if the account's state is cached. */
export type ValidateClaims = (claims: Claims) => ClaimsRejection | Promise<ClaimsRejection>;

type Options = { readonly asOwner: AsOwner; readonly log: Pick<Logger, "warn"> };
/** The claim with the digest of the caller's session id. */
export const SESSION_CLAIM = "session_digest";

type AccountState = { user_id: string; state: "living" | "disabled" | "deleted"; tokens_valid_from: string | null };

/** How long a token can still be used after its account was disabled. */
const CACHE_MS = 4_000;
const MAX_CACHED = 10_000;

/**
 * Checks the account of a token, API key or session: it is invalid if the account was disabled or deleted, and a token also
 * if the password or role has changed since it was issued. A subject without an account here is accepted, because another
 * issuer may share the keys.
 */
export function makeValidateClaims({ asOwner, log }: Options): ValidateClaims {
  const askOwner = ownerQuestion<AccountState>({
    asOwner,
    text: "select * from auth.account_states($1)",
    log,
    warning: "disabled users are not detected: this needs the owner's connection (OWNER_DATABASE_URL)",
  });
  const queryStates: Ask<AccountState> = async (userIds) => {
    const rows = await askOwner([userIds]);
    return new Map(rows.map((row) => [row.user_id, row]));
  };
  const stateOf = askSeldom(queryStates, { rememberedMs: CACHE_MS, most: MAX_CACHED });
  const isLiveSession = askSeldom(makeLiveSessionQuery({ asOwner, log }), { rememberedMs: CACHE_MS, most: MAX_CACHED });

  const validateAccount: ValidateClaims = (claims) => {
    const userId = readUserId(claims);
    if (userId === null) return null;
    const state = stateOf(userId);
    return state instanceof Promise ? state.then((known) => rejectionOf(claims, known)) : rejectionOf(claims, state);
  };

  const validateSession = async (claims: Claims, digest: string): Promise<ClaimsRejection> => {
    const objection = await validateAccount(claims);
    if (objection || (await isLiveSession(digest))) return objection;
    return unauthorized("INVALID_TOKEN", "The session has ended; sign in again.", "The session has ended");
  };

  return (claims) => {
    const { [SESSION_CLAIM]: digest } = claims;
    return typeof digest === "string" ? validateSession(claims, digest) : validateAccount(claims);
  };
}

function makeLiveSessionQuery({ asOwner, log }: Options): Ask<true> {
  const askOwner = ownerQuestion<{ digest: string }>({
    asOwner,
    text: "select encode(living, 'hex') as digest from auth.living_sessions($1) as living",
    log,
    warning: "ended sessions are not detected: this needs the owner's connection (OWNER_DATABASE_URL)",
  });
  return async (digests) => {
    const rows = await askOwner([digests.map((digest) => Buffer.from(digest, "hex"))]);
    return new Map(rows.map(({ digest }) => [digest, true]));
  };
}

function rejectionOf(claims: Claims, state: AccountState | null): ClaimsRejection {
  if (!state) return null;
  if (state.state === "disabled") {
    return unauthorized("INVALID_TOKEN", "This account is disabled.", "The account is disabled");
  }
  if (state.state === "deleted") {
    return unauthorized("INVALID_TOKEN", "This account was deleted.", "The account was deleted");
  }
  const issuedAt = timeOf(claims, "iat");
  if (issuedAt !== null && issuedAt < Number(state.tokens_valid_from)) {
    return unauthorized("TOKEN_EXPIRED", "The account has changed; refresh the token or sign in again.", "JWT expired");
  }
  return null;
}
