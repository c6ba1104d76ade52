import pg from "pg";
import { queryApiSchema } from "#postgres/client";
import type { DoctorFinding } from "./facts.ts";

const HAS_WEBHOOKS = `
  select from pg_catalog.pg_class
  where oid = pg_catalog.to_regclass('content_service.webhook_deliveries') and pg_catalog.has_table_privilege(oid, 'select')
    and pg_catalog.has_table_privilege(pg_catalog.to_regclass('api.webhooks'), 'select')`;
const READ_WEBHOOKS = `
  select name, table_name as table, pg_catalog.to_regclass(table_name) is not null as "hasTable",
    exists (select from pg_catalog.pg_index where indrelid = pg_catalog.to_regclass(table_name) and indisprimary) as "hasKey",
    disabled_because as "disabledBecause",
    (select pg_catalog.count(*)::int from content_service.webhook_deliveries where webhook_id = webhooks.id and state = 'dead') as dead,
    coalesce((
      select extract(epoch from pg_catalog.clock_timestamp() - recorded_at)::pg_catalog.float8 from content_service.webhook_deliveries
      where webhook_id = webhooks.id and state = 'pending' order by id limit 1
    ), 0) as "waitingSeconds"
  from api.webhooks order by name`;

/** The minimum age of a waiting change for which its webhook is reported. */
const LONG_WAIT_SECONDS = 3_600;

type WebhookFacts = {
  readonly name: string;
  readonly table: string;
  readonly hasTable: boolean;
  readonly hasKey: boolean;
  /** The reason why the service has stopped sending; null if it has not. */
  readonly disabledBecause: string | null;
  readonly dead: number;
  /** The age of the oldest waiting change. */
  readonly waitingSeconds: number;
};

/** Finds webhooks that send nothing, or whose deliveries wait or have failed. */
export async function readWebhookFindings(owner: pg.ClientBase): Promise<DoctorFinding[]> {
  if ((await queryApiSchema(owner, HAS_WEBHOOKS)).rowCount === 0) return [];
  const { rows } = await queryApiSchema<WebhookFacts>(owner, READ_WEBHOOKS);
  return rows.flatMap(webhookFindings);
}

function webhookFindings(webhook: WebhookFacts): DoctorFinding[] {
  const { name, table, hasTable, hasKey, disabledBecause, dead, waitingSeconds } = webhook;
  const literal = pg.escapeLiteral(name);
  const findings: DoctorFinding[] = [];
  const add = (kind: DoctorFinding["kind"], problem: string, fix: string) =>
    findings.push({ kind, problem: `Webhook ${name}: ${problem}`, fix });
  if (!hasTable)
    add("advice", `the table ${table} does not exist.`, `delete from api.webhooks where name = ${literal};`);
  else if (!hasKey)
    add("slow", `${table} has no primary key, so all its changes are sent one after the other.`, "Add a primary key.");
  if (disabledBecause !== null)
    add(
      "advice",
      `nothing is sent: ${disabledBecause}`,
      disabledBecause.includes("WEBHOOK_NETWORK")
        ? "Change its url, or WEBHOOK_NETWORK; afterwards update its row, which starts it again."
        : `update api.webhooks set is_enabled = true where name = ${literal};`,
    );
  else if (waitingSeconds > LONG_WAIT_SECONDS)
    add(
      "advice",
      `a change has waited for ${Math.floor(waitingSeconds / 60)} minutes.`,
      "See whether its receiver works.",
    );
  if (dead > 0)
    add(
      "advice",
      `${dead} ${dead === 1 ? "delivery" : "deliveries"} failed too often.`,
      `select api.replay_webhook_deliveries(${literal});`,
    );
  return findings;
}
