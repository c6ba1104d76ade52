import { type AsOwner, inTransaction } from "../../database/as-owner.ts";
import { toApiError } from "../../errors.ts";
import { SENDER, type Sender, senderValue } from "../sender.ts";

/** Does what has to do with a provider, or with what one began; when it is refused the audit log says so, by which code and why. */
export type Audited = <T>(provider: string | null, sender: Sender, work: () => Promise<T>) => Promise<T>;

const LONGEST_CAUSE = 300;
const REFUSED = `select auth.log_event('federation.refused', null, ${SENDER}, $2)`;

export function makeAudited(asOwner: AsOwner): Audited {
  return async (provider, sender, work) => {
    try {
      return await work();
    } catch (error) {
      const { code: reason, cause } = toApiError(error);
      const because = cause instanceof Error ? cause.message.slice(0, LONGEST_CAUSE) : undefined;
      const details = JSON.stringify({ provider, reason, because });
      await inTransaction(asOwner, (client) => client.query(REFUSED, [senderValue(sender), details]));
      throw error;
    }
  };
}
