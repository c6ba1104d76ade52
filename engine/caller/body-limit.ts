import type { Config } from "../config/config.ts";
import type { Caller } from "./caller.ts";

/** How large a request body may be, and out of whose share of the memory for bodies it is taken. */
export type BodyLimit = {
  readonly bytes: number;
  readonly isAnonymous: boolean;
  /** What else may be done about a body that is larger. */
  readonly hint?: string;
};

export type BodyLimitOf = (caller: Pick<Caller, "role">) => BodyLimit;

type Settings = Pick<Config, "anonRole" | "maxBodyBytes" | "maxAnonymousBodyBytes">;

/** By the caller's role, since anybody can show the public key. `mostBytes` is what the route takes, whoever asks. */
export function makeBodyLimits(
  { anonRole, maxBodyBytes, maxAnonymousBodyBytes }: Settings,
  mostBytes = Number.POSITIVE_INFINITY,
): BodyLimitOf {
  const known: BodyLimit = { bytes: Math.min(mostBytes, maxBodyBytes), isAnonymous: false };
  const anonymous: BodyLimit =
    maxAnonymousBodyBytes < known.bytes
      ? { bytes: maxAnonymousBodyBytes, isAnonymous: true, hint: `Who signs in may send ${known.bytes} bytes.` }
      : { ...known, isAnonymous: true };
  return ({ role }) => (role === anonRole ? anonymous : known);
}
