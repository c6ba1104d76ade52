import { randomUUID } from "node:crypto";
import type pg from "pg";
import type { Config } from "#config";
import { makeWebhookSender } from "#jobs/send-delivery";
import { readWebhookStates, type WebhookState } from "#jobs/webhook-store";
import type { Webhook } from "#jobs/webhooks";
import { queryApiSchema } from "#postgres/client";
import { type AsOwner, inOwnerTransaction } from "#postgres/database";
import { commandLine } from "#runtime";
import { findAction, formatRecords, runCommand, UsageError } from "./command/command.ts";
import { withOwner } from "./command/command-context.ts";

type ActionContext = {
  readonly client: pg.ClientBase;
  readonly config: Config;
  readonly args: readonly string[];
  readonly options: Readonly<Record<string, unknown>>;
};
type WebhooksAction = (context: ActionContext) => Promise<void>;

const MAX_LISTED = 100;
/** SQLSTATE of an invalid time. */
const INVALID_TIME = "22007";

const DEAD = `
  select delivery.delivery_id as id, webhook.name as webhook, delivery.type, delivery.key, delivery.recorded_at as recorded,
    delivery.attempts, delivery.last_error as "last error"
  from content_service.webhook_deliveries delivery join api.webhooks webhook on webhook.id = delivery.webhook_id
  where delivery.state = 'dead' and ($1::pg_catalog.text is null or webhook.name = $1)
  order by delivery.id limit ${MAX_LISTED + 1}`;
const FIND = `
  select id, name, url, secret, max_attempts as "maxAttempts", (1000 * extract(epoch from timeout))::integer as "timeoutMs",
    pg_catalog.parse_ident(table_name) as "qualifiedTable"
  from api.webhooks where name = $1 for update`;
const KEEP_NEW_SECRET = "update api.webhooks set secret = pg_catalog.split_part(secret, ' ', 1) where id = $1";
const MAKE_NEW_SECRET = "update api.webhooks set secret = default where id = $1 returning secret";
const KEEP_BOTH_SECRETS = "update api.webhooks set secret = secret || ' ' || $2 where id = $1";

const ACTIONS: Readonly<Record<string, WebhooksAction>> = {
  async list({ client, args }) {
    if (args.length > 0) throw new UsageError(`Unexpected argument "${args[0]}".`);
    const webhooks = (await readWebhookStates(client, null)).map(toListedRecord);
    console.log(webhooks.length > 0 ? formatRecords(webhooks) : "No webhooks found.");
  },
  async dead({ client, args: [name, ...others] }) {
    if (others.length > 0) throw new UsageError(`Unexpected argument "${others[0]}".`);
    if (name !== undefined) await findWebhook(client, [name]);
    const { rows } = await queryApiSchema(client, DEAD, [name]);
    console.log(rows.length > 0 ? formatRecords(rows.slice(0, MAX_LISTED)) : "No dead deliveries found.");
    if (rows.length > MAX_LISTED) console.log(`These are the oldest ${MAX_LISTED}.`);
  },
  async replay(context) {
    console.log(`${await callForDead("replay_webhook_deliveries", context)} deliveries are sent again.`);
  },
  async discard(context) {
    console.log(`${await callForDead("discard_webhook_deliveries", context)} deliveries were deleted.`);
  },
  async test({ client, config, args }) {
    const { qualifiedTable, ...webhook } = await findWebhook(client, args);
    const sender = makeWebhookSender({ network: config.webhookNetwork });
    const delivery = { id: randomUUID(), body: writeTestPayload(qualifiedTable) };
    const outcome = await sender.send(delivery, webhook, new AbortController().signal);
    await sender.close();
    if (outcome.kind !== "delivered") throw new Error(`The test delivery to ${webhook.url} failed: ${outcome.reason}.`);
    console.log(`${webhook.url} has received the test delivery ${delivery.id}.`);
  },
  async rotate({ client, args, options: { finish } }) {
    const work = finish ? finishRotation : startRotation;
    const asOwner: AsOwner = (run) => run(client);
    console.log(await inOwnerTransaction(asOwner, async () => work(client, await findWebhook(client, args))));
  },
};

function toListedRecord({
  events,
  pending,
  oldestAt,
  deliveredAt,
  disabledBecause,
  lastError,
  ...state
}: WebhookState) {
  const { name, table, url, dead } = state;
  return {
    ...{ name, table, events: events.join(), url, state: state.state, waiting: pending, oldest: oldestAt, dead },
    ...{ "last delivery": deliveredAt, "last error": disabledBecause ?? lastError },
  };
}

type FoundWebhook = Webhook & { readonly qualifiedTable: readonly string[] };

async function findWebhook(client: pg.ClientBase, [name, ...others]: readonly string[]): Promise<FoundWebhook> {
  if (name === undefined || others.length > 0)
    throw new UsageError("Specify the name of a webhook, as printed by list.");
  const { rows } = await queryApiSchema<FoundWebhook>(client, FIND, [name]);
  if (!rows[0]) throw new Error(`There is no webhook "${name}".`);
  return rows[0];
}

/** Calls a function on the dead deliveries of a webhook, all or those of a period; returns their number. */
async function callForDead(
  name: string,
  { client, args, options: { since = "-infinity", until = "infinity" } }: ActionContext,
): Promise<string> {
  const webhook = await findWebhook(client, args);
  const sql = `select api.${name}($1, $2::pg_catalog.timestamptz, $3::pg_catalog.timestamptz) as count`;
  const { rows } = await queryApiSchema<{ count: string }>(client, sql, [webhook.name, since, until]).catch((error) => {
    throw error.code === INVALID_TIME ? new UsageError(`${error.message}.`) : error;
  });
  return rows[0]!.count;
}

/** The payload of a test: like other payloads, but with its own type and without a row. */
function writeTestPayload([schema, table]: readonly string[]): string {
  const timestamp = new Date().toISOString();
  return JSON.stringify({ type: "TEST", schema, table, record: null, old_record: null, timestamp });
}

async function startRotation(client: pg.ClientBase, { id, name, secret }: Webhook): Promise<string> {
  if (secret.includes(" ")) {
    throw new Error(
      `Webhook "${name}" has two secrets already. End the rotation first: ${commandLine("webhooks", `rotate ${name} --finish`)}`,
    );
  }
  const { rows } = await queryApiSchema<{ secret: string }>(client, MAKE_NEW_SECRET, [id]);
  await queryApiSchema(client, KEEP_BOTH_SECRETS, [id, secret]);
  return `Requests are signed with the former secret and with this one:\n${rows[0]!.secret}`;
}

async function finishRotation(client: pg.ClientBase, { id, name, secret }: Webhook): Promise<string> {
  if (!secret.includes(" ")) throw new Error(`Webhook "${name}" has one secret only.`);
  await queryApiSchema(client, KEEP_NEW_SECRET, [id]);
  return "Requests are signed with the new secret only.";
}

await runCommand({
  usage: `${commandLine("webhooks")}
  Lists the webhooks: their state, how many deliveries wait and since when, dead deliveries, the last delivery, and the last error.
${commandLine("webhooks", "dead [NAME]")}
  Lists deliveries that have failed for good.
${commandLine("webhooks", "replay NAME [--since TIME] [--until TIME]")}
  Sends dead deliveries again, all or those of changes made in that time.
${commandLine("webhooks", "discard NAME [--since TIME] [--until TIME]")}
  Deletes them.
${commandLine("webhooks", "test NAME")}
  Sends a test delivery once; exits with 1 if it fails.
${commandLine("webhooks", "rotate NAME")}
  Adds a new secret and prints it; requests are signed with both.
${commandLine("webhooks", "rotate NAME --finish")}
  Removes the former secret.

Examples:
  ${commandLine("webhooks", "replay orders --since 2027-01-31T12:00Z")}
  ${commandLine("webhooks", "test orders")}`,
  options: {
    since: { type: "string" },
    until: { type: "string" },
    finish: { type: "boolean" },
  },
  async run(config, [action = "list", ...args], options) {
    const act = findAction(ACTIONS, "webhooks", action);
    await withOwner(config, (asOwner) => asOwner((client) => act({ client, config, args, options })));
  },
});
