import { type AsOwner, inTransaction } from "../../database/as-owner.ts";
import { toApiError } from "../../errors.ts";
import { CLIENT_INFO_SQL, type ClientInfo, clientInfoParameter } from "../client-info.ts";

/** Runs the work of a federated sign-in; if it throws, writes the error's code and cause to the audit log. */
export type AuditRefusals = <T>(provider: string | null, clientInfo: ClientInfo, work: () => Promise<T>) => Promise<T>;

const MAX_CAUSE_LENGTH = 300;
const REFUSED = `select auth.log_event('federation.refused', null, ${CLIENT_INFO_SQL}, $2)`;

export function makeAuditRefusals(asOwner: AsOwner): AuditRefusals {
  return async (provider, clientInfo, work) => {
    try {
      return await work();
    } catch (error) {
      const { code: reason, cause } = toApiError(error);
      const because = cause instanceof Error ? cause.message.slice(0, MAX_CAUSE_LENGTH) : undefined;
      const details = JSON.stringify({ provider, reason, because });
      await inTransaction(asOwner, (client) => client.query(REFUSED, [clientInfoParameter(clientInfo), details]));
      throw error;
    }
  };
}
