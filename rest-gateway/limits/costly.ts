import { ApiError } from "../../engine/errors.ts";
import { countedAddress } from "../../engine/limits/counted-address.ts";
import type { SharedLimit } from "../../engine/limits/shared-limit.ts";
import type { GatewayRequest } from "../http.ts";

/**
 * Counts what makes an account or sends a mail, which costs more than an answer: a password to hash, or somebody else's
 * patience. Refuses what is too much.
 */
export type AdmitCostly = (request: Pick<GatewayRequest, "connection">) => Promise<void>;

/** Without a limit there is never too much. */
export function makeAdmitCostly(limit: SharedLimit | null): AdmitCostly {
  if (limit === null) return async () => {};
  return async (request) => {
    const seconds = await limit.take(countedAddress(request.connection().address));
    if (seconds === null) return;
    throw new ApiError(429, "RATE_LIMITED", "Too much of this came from your address.", {
      hint: `Come back in ${seconds} seconds.`,
      headers: { "Retry-After": String(seconds) },
    });
  };
}
