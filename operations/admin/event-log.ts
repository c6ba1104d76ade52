import { CLIENT_INFO_SQL, clientInfoParameter } from "#accounts/identity";
import { clientInfoOf, type GatewayRequest } from "#http";
import type { AsOwner } from "#postgres/database";
import type { Logger } from "#runtime/log";

/** Records an administrator's action in `auth.audit_log`, and in the log, which databases without accounts have too. */
export type LogEvent = (event: string, details?: Readonly<Record<string, unknown>>) => Promise<void>;

type EventOrigin = {
  readonly request: GatewayRequest;
  /** The administrator; null if the token names no user. */
  readonly userId: string | null;
};

type EventLogDependencies = { readonly asOwner: AsOwner; readonly log: Logger };

const HAS_AUDIT_LOG =
  "select pg_catalog.to_regprocedure('auth.log_event(text, bigint, auth.client_info, jsonb)') is not null as has";
const LOG_EVENT = `select auth.log_event($2, $3, ${CLIENT_INFO_SQL}, $4)`;

export function makeEventLog({ asOwner, log }: EventLogDependencies): (source: EventOrigin) => LogEvent {
  return ({ request, userId }) =>
    async (event, details = {}) => {
      log.info({ request: request.id, user: userId, event, ...details }, "an administrator's action");
      const client = clientInfoParameter(clientInfoOf(request));
      await asOwner(async (owner) => {
        const { rows } = await owner.query<{ has: boolean }>(HAS_AUDIT_LOG);
        if (rows[0]!.has) await owner.query(LOG_EVENT, [client, event, userId, JSON.stringify(details)]);
      });
    };
}
