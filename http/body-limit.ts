import type { Caller } from "#accounts/identity";
import type { Config } from "#config";
import type { BodyLimit } from "./request.ts";

export type FindBodyLimit = (caller: Pick<Caller, "role">) => BodyLimit;

type BodyLimitSettings = Pick<Config, "anonRole" | "maxBodyBytes" | "maxAnonymousBodyBytes">;

/**
 * The limit depends on the caller's role, because the public key is no secret. `maxRouteBytes` is the limit of the route for
 * all callers.
 */
export function makeBodyLimits(
  { anonRole, maxBodyBytes, maxAnonymousBodyBytes }: BodyLimitSettings,
  maxRouteBytes = Number.POSITIVE_INFINITY,
): FindBodyLimit {
  const authenticated: BodyLimit = { bytes: Math.min(maxRouteBytes, maxBodyBytes), isAnonymous: false };
  const anonymous: BodyLimit =
    maxAnonymousBodyBytes < authenticated.bytes
      ? { bytes: maxAnonymousBodyBytes, isAnonymous: true, hint: `Who signs in may send ${authenticated.bytes} bytes.` }
      : { ...authenticated, isAnonymous: true };
  return ({ role }) => (role === anonRole ? anonymous : authenticated);
}
