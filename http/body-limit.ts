import type { Config } from "../engine/config/config.ts";
import type { Caller } from "../engine/identity/caller.ts";

/** How large a request body may be, and out of whose share of the memory for bodies it is taken. */
export type BodyLimit = {
  readonly bytes: number;
  readonly isAnonymous: boolean;
  /** What else may be done about a body that is larger. */
  readonly hint?: string;
};

export type FindBodyLimit = (caller: Pick<Caller, "role">) => BodyLimit;

type BodyLimitSettings = Pick<Config, "anonRole" | "maxBodyBytes" | "maxAnonymousBodyBytes">;

/** By the caller's role, since anybody can show the public key. `mostBytes` is what the route takes, whoever asks. */
export function makeBodyLimits(
  { anonRole, maxBodyBytes, maxAnonymousBodyBytes }: BodyLimitSettings,
  mostBytes = Number.POSITIVE_INFINITY,
): FindBodyLimit {
  const authenticated: BodyLimit = { bytes: Math.min(mostBytes, maxBodyBytes), isAnonymous: false };
  const anonymous: BodyLimit =
    maxAnonymousBodyBytes < authenticated.bytes
      ? { bytes: maxAnonymousBodyBytes, isAnonymous: true, hint: `Who signs in may send ${authenticated.bytes} bytes.` }
      : { ...authenticated, isAnonymous: true };
  return ({ role }) => (role === anonRole ? anonymous : authenticated);
}
