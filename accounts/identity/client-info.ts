import { isIP } from "node:net";
import { normalizeAddress } from "#runtime";

/** The client of a request, for the audit log and for throttling. */
export type ClientInfo = {
  readonly address: string | null;
  readonly userAgent: string | null;
  readonly requestId: string | null;
  /** The id of the acting user, if it is not the affected one. */
  readonly actor?: string | null;
};

/** The operator at the command line. */
export const OPERATOR: ClientInfo = { address: null, userAgent: null, requestId: null };

/** Reads the client info from $1. */
export const CLIENT_INFO_SQL = "pg_catalog.jsonb_populate_record(null::auth.client_info, $1)";

const MAX_USER_AGENT_LENGTH = 500;

export function clientInfoParameter({ address, userAgent, requestId, actor = null }: ClientInfo): string {
  return JSON.stringify({
    address: address && toInet(address),
    user_agent: userAgent?.slice(0, MAX_USER_AGENT_LENGTH) ?? null,
    request_id: requestId,
    actor,
  });
}

/** Returns null for text that the type inet does not accept. */
export function toInet(text: string): string | null {
  const address = normalizeAddress(text);
  return isIP(address) === 0 ? null : address;
}
