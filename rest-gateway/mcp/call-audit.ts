import type { Caller, ClientInfo } from "#accounts/identity";
import { type AsOwner, inOwnerTransaction } from "#postgres/database";
import type { Logger } from "#runtime/log";

type CallEntry = {
  readonly user_id: string | null;
  readonly address: string | null;
  readonly request_id: string | null;
  readonly user_agent: string | null;
  readonly details: object;
};

type RecordedCall = {
  readonly tool: string;
  readonly isError: boolean;
  readonly milliseconds: number;
};

const WRITE_ENTRIES = `
  select auth.log_event('mcp.called', entry.user_id,
    row(entry.address, entry.user_agent, entry.request_id, null)::auth.client_info, entry.details)
  from pg_catalog.jsonb_to_recordset($1::pg_catalog.jsonb)
    as entry(user_id pg_catalog.int8, address pg_catalog.inet, user_agent pg_catalog.text, request_id pg_catalog.text, details pg_catalog.jsonb)`;

const HAS_AUDIT_LOG = "select pg_catalog.to_regclass('auth.audit_log') is not null as has";

/** The number of waiting entries above which further ones are only counted. */
const MOST_WAITING = 10_000;
const WRITE_AFTER_MS = 1_000;

/** Writes an entry of the audit log for each call, together and after the responses, so that calls do not wait. */
export class CallAudit {
  #waiting: CallEntry[] = [];
  #dropped = 0;
  #timer: NodeJS.Timeout | null = null;
  readonly #asOwner: AsOwner;
  readonly #log: Logger;

  constructor(asOwner: AsOwner, log: Logger) {
    this.#asOwner = asOwner;
    this.#log = log;
  }

  record({ claims, role }: Caller, { address, userAgent, requestId }: ClientInfo, call: RecordedCall): void {
    if (this.#waiting.length >= MOST_WAITING) {
      this.#dropped++;
      return;
    }
    const { sub, user_id: number, client_id: client, oauth_grant_id: grant, api_key: key } = claims;
    const userId = [number, sub].map(String).find((text) => /^\d{1,18}$/.test(text)) ?? null;
    const { tool, isError, milliseconds } = call;
    const details = { tool, role, failed: isError, ms: Math.round(milliseconds), client, grant, key };
    this.#waiting.push({ user_id: userId, address, request_id: requestId, user_agent: userAgent, details });
    this.#timer ??= setTimeout(() => void this.write(), WRITE_AFTER_MS).unref();
  }

  /** Writes the waiting entries. If that fails, the failure is logged and the entries are lost: the calls were already made. */
  async write(): Promise<void> {
    if (this.#timer) clearTimeout(this.#timer);
    this.#timer = null;
    const entries = this.#waiting;
    this.#waiting = [];
    if (entries.length === 0) return;
    try {
      await inOwnerTransaction(this.#asOwner, async (client) => {
        const { rows } = await client.query<{ has: boolean }>(HAS_AUDIT_LOG);
        if (rows[0]!.has) await client.query(WRITE_ENTRIES, [JSON.stringify(entries)]);
      });
    } catch (err) {
      this.#log.warn({ err, entries: entries.length }, "Calls of MCP could not be written to the audit log");
    }
    if (this.#dropped > 0) this.#log.warn({ entries: this.#dropped }, "More calls of MCP than the audit log takes");
    this.#dropped = 0;
  }
}
