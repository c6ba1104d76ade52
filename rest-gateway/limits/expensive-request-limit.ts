import { ApiError } from "../../engine/errors.ts";
import { clientNetwork } from "../../engine/limits/client-network.ts";
import type { SharedRateLimit } from "../../engine/limits/shared-rate-limit.ts";
import type { GatewayRequest } from "../http.ts";

/**
 * Limits requests that create an account or send an e-mail, per client address: they hash a password or disturb a third
 * person. Throws 429 above the limit.
 */
export type LimitExpensiveRequest = (request: Pick<GatewayRequest, "connection">) => Promise<void>;

/** Null disables the limit. */
export function makeExpensiveRequestLimit(limit: SharedRateLimit | null): LimitExpensiveRequest {
  if (limit === null) return async () => {};
  return async (request) => {
    const seconds = await limit.take(clientNetwork(request.connection().address));
    if (seconds === null) return;
    throw new ApiError(429, "RATE_LIMITED", "Too many requests of this kind from your address.", {
      hint: `Try again in ${seconds} seconds.`,
      headers: { "Retry-After": String(seconds) },
    });
  };
}
