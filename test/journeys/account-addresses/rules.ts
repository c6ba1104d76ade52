import type { State, Way } from "./ways.ts";

/** The credentials and claims that the owner of the address, and those who used it before, have in the end. */
export type Outcome = {
  /** True if a message was sent to the address. */
  readonly isMailed: boolean;
  /** The credentials that the owner signs in with. A sign-in that was opened before the proof is none. */
  readonly owner: readonly string[];
  /** The credentials of the account that still work. */
  readonly before: "all" | readonly string[];
  /** The addresses that the owner's tokens claim. */
  readonly claims: readonly string[];
};

/** By rule, the states in which a message is sent to the address. A banned account gets none. */
const MAILED: Readonly<Record<string, readonly State[]>> = {
  signUp: ["none", "row", "unconfirmed"],
  resent: ["none", "row", "unconfirmed"],
  resentElsewhere: ["none", "row", "unconfirmed"],
  signIn: ["none", "row", "unconfirmed", "confirmed"],
  recovery: ["row", "unconfirmed", "confirmed"],
  reset: ["row", "unconfirmed", "confirmed"],
  invitation: ["none", "row", "unconfirmed"],
  // A change to an address that an account has is refused.
  // The pages refuse a row without an account too.
  begin: ["none"],
  move: ["none"],
  beginByCode: ["none", "row"],
  moveByCode: ["none", "row"],
};

/** The states in which the address is proved. A provider vouches for it without a message, or an administrator has the link. */
const PROVED: Readonly<Record<string, readonly State[]>> = {
  ...MAILED,
  vouched: ["none", "row", "unconfirmed", "confirmed"],
  newLink: ["none", "row", "unconfirmed"],
  ownSignIn: ["row", "unconfirmed", "confirmed"],
  ownLink: ["row", "unconfirmed", "confirmed"],
  appoint: ["none", "row"],
  reappoint: ["unconfirmed", "confirmed"],
  // The row of a number is an account without credentials.
  appointNumber: ["none"],
  reappointNumber: ["row", "unconfirmed", "confirmed"],
  vouch: ["unconfirmed", "confirmed"],
  vouchNumber: ["row", "unconfirmed", "confirmed"],
};

/** The states in which the password is set. Nobody knows which of several people's sign-ups is mailed again; /auth/v1 knows its own sign-up or account. */
const RESENT: Readonly<Record<string, readonly State[]>> = { resent: ["none", "row"], resentElsewhere: ["none"] };

/** The accounts with an unconfirmed number are created by an administrator, who confirms them as they are. */
const AS_IT_IS: ReadonlySet<string> = new Set(["reappointNumber", "vouchNumber"]);

/** The rules by which the owner or the administrator chooses a password with the proof. */
const WITH_PASSWORD: ReadonlySet<string> = new Set([
  ...["signUp", "recovery", "reset", "invitation", "newLink", "ownLink"],
  ...["appoint", "reappoint", "appointNumber", "reappointNumber"],
]);

export function isMailed({ rule }: Way, state: State): boolean {
  return MAILED[rule]?.includes(state) ?? false;
}

/** Returns the outcome after somebody who reads the messages to the address has taken a way to prove it. */
export function outcomeOfProof(way: Way, state: State): Outcome {
  const { rule } = way;
  const nothing = { isMailed: isMailed(way, state), owner: [], claims: [] };
  if (state === "banned") return { ...nothing, before: [] };
  if (!PROVED[rule]!.includes(state)) return { ...nothing, before: hasHolder(state) ? "all" : [] };
  const steps = way.steps.join();
  const hasTokens = /\/verify |GET|\/auth\/v1\/authorize|id_token|exchange/.test(steps);
  const hasPassword = RESENT[rule]?.includes(state) ?? WITH_PASSWORD.has(rule);
  return {
    isMailed: isMailed(way, state),
    owner: [...(hasPassword ? ["password"] : []), ...(hasTokens || /OPENID|SAML/.test(steps) ? ["session"] : [])],
    before: state === "confirmed" || (AS_IT_IS.has(rule) && hasHolder(state)) ? keptOfConfirmed(way, hasTokens) : [],
    claims: hasTokens || hasPassword ? ["the address"] : [],
  };
}

function hasHolder(state: State): boolean {
  return state === "unconfirmed" || state === "confirmed";
}

/** The first proof was another one. A new password ends the sign-ins, and the session of a browser replaces the previous one. */
function keptOfConfirmed({ rule }: Way, hasTokens: boolean): Outcome["before"] {
  if (rule === "reset") return ["apiKey", "passkey"];
  if (WITH_PASSWORD.has(rule)) return ["apiKey", "identity", "passkey"];
  if (hasTokens || rule === "vouch" || rule === "vouchNumber") return "all";
  return ["accessToken", "apiKey", "identity", "passkey", "password", "refreshToken", "sessionToken"];
}
