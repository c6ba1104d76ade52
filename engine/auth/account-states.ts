import { type Ask, askSeldom } from "../ask-seldom.ts";
import { type Claims, timeOf } from "../caller/claims.ts";
import { unauthorized } from "../caller/unauthorized.ts";
import type { AsOwner } from "../database/as-owner.ts";
import type { ApiError } from "../errors.ts";
import type { Logger } from "../log.ts";
import { ownerQuestion } from "../owner-question.ts";
import { readUserId } from "./user-id.ts";

/** Why claims that were good when they were issued are so no longer; null when they still are. */
export type Objection = ApiError | null;

/** Are these claims still good? Answered without waiting for who was asked about of late. */
export type AccountStates = (claims: Claims) => Objection | Promise<Objection>;

type Options = { readonly asOwner: AsOwner; readonly log: Pick<Logger, "warn"> };
/** Which session a caller showed: by its digest, with which nobody can sign in. */
export const SESSION_CLAIM = "session_digest";

type State = { user_id: string; state: "living" | "disabled" | "deleted"; tokens_valid_from: string | null };

/** So long may a token be used after its account was disabled. */
const REMEMBERED_MS = 4_000;
const MOST_REMEMBERED = 10_000;

/**
 * Looks at what has become of the user that a token, a key or a session names: disabled or deleted accounts end it at once, and a
 * new password or another role ends the tokens from before. Who never had an account here is not ours to judge: another
 * issuer that shares the keys may name whom it likes.
 */
export function makeAccountStates({ asOwner, log }: Options): AccountStates {
  const askOwner = ownerQuestion<State>({
    asOwner,
    text: "select * from auth.account_states($1)",
    log,
    warning: "tokens of disabled users are not noticed: only the owner (OWNER_DATABASE_URL) can look",
  });
  const ask: Ask<State> = async (userIds) => {
    const rows = await askOwner([userIds]);
    return new Map(rows.map((row) => [row.user_id, row]));
  };
  const stateOf = askSeldom(ask, { rememberedMs: REMEMBERED_MS, most: MOST_REMEMBERED });
  const isLiving = askSeldom(livingSessions({ asOwner, log }), { rememberedMs: REMEMBERED_MS, most: MOST_REMEMBERED });

  const ofAccount: AccountStates = (claims) => {
    const userId = readUserId(claims);
    if (userId === null) return null;
    const state = stateOf(userId);
    return state instanceof Promise ? state.then((known) => objectionTo(claims, known)) : objectionTo(claims, state);
  };

  const ofSession = async (claims: Claims, digest: string): Promise<Objection> => {
    const objection = await ofAccount(claims);
    if (objection || (await isLiving(digest))) return objection;
    return unauthorized("INVALID_TOKEN", "The session has ended; sign in again.", "The session has ended");
  };

  return (claims) => {
    const { [SESSION_CLAIM]: digest } = claims;
    return typeof digest === "string" ? ofSession(claims, digest) : ofAccount(claims);
  };
}

function livingSessions({ asOwner, log }: Options): Ask<true> {
  const askOwner = ownerQuestion<{ digest: string }>({
    asOwner,
    text: "select encode(living, 'hex') as digest from auth.living_sessions($1) as living",
    log,
    warning: "sessions that end are not noticed: only the owner (OWNER_DATABASE_URL) can look",
  });
  return async (digests) => {
    const rows = await askOwner([digests.map((digest) => Buffer.from(digest, "hex"))]);
    return new Map(rows.map(({ digest }) => [digest, true]));
  };
}

function objectionTo(claims: Claims, state: State | null): Objection {
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
