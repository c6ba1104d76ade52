import { clientNetwork } from "../limits/client-network.ts";
import type { Claims } from "./claims.ts";

/**
 * Identifies a caller from request to request, for limits and shares: the user, or the API key. A token without a subject
 * is shown by many, such as every visitor of a site, so there it is the client's address.
 */
export function callerKey(claims: Claims | null, address: () => string | null): string {
  const { sub, api_key: key } = claims ?? {};
  if (typeof sub === "string" && sub !== "") return `user ${sub}`;
  return typeof key === "string" ? `key ${key}` : `address ${clientNetwork(address())}`;
}
