import { isIP } from "node:net";
import { plainAddress } from "../plain-address.ts";

/** Where a request came from: for the audit log and the throttle. */
export type Sender = {
  readonly address: string | null;
  readonly userAgent: string | null;
  readonly requestId: string | null;
  /** The id of who asks, where that is not the user whom it is about. */
  readonly actor?: string | null;
};

/** Somebody at the command line. */
export const OPERATOR: Sender = { address: null, userAgent: null, requestId: null };

/** The first parameter of every statement that tells who asked. */
export const SENDER = "jsonb_populate_record(null::auth.sender, $1)";

const LONGEST_USER_AGENT = 500;

export function senderValue({ address, userAgent, requestId, actor = null }: Sender): string {
  return JSON.stringify({
    address: address && addressIn(address),
    user_agent: userAgent?.slice(0, LONGEST_USER_AGENT) ?? null,
    request_id: requestId,
    actor,
  });
}

/** Postgres keeps addresses alone. */
function addressIn(text: string): string | null {
  const address = plainAddress(text);
  return isIP(address) === 0 ? null : address;
}
