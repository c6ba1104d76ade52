import { expect, test } from "vitest";
import { readWebhookFindings } from "../../../operations/doctor/webhook-checks.ts";
import { cloneDatabase, useClient, useDatabase } from "../../database.ts";
import { connect } from "../../db/callers.ts";

const database = useDatabase({ template: "platform" });
const owner = useClient(database.ownerUrl);

async function problemsAfter(change: string): Promise<readonly string[]> {
  await owner.query(change);
  return (await readWebhookFindings(owner)).map(({ kind, problem }) => `${kind}: ${problem}`);
}

test("webhooks that send nothing, or have deliveries that wait or failed, are reported", async () => {
  expect(
    await problemsAfter(`
      create table public.logs (note text);
      alter table public.logs enable row level security;
      insert into api.webhooks (name, table_name, url, role) values ('log', 'public.logs', 'https://example.com', 'service_role');
      insert into public.logs values ('waits'), ('dead');
      update content_service.webhook_deliveries set recorded_at = now() - interval '2 hours',
        state = case new ->> 'note' when 'dead' then 'dead' else 'pending' end`),
  ).toEqual([
    "slow: Webhook log: public.logs has no primary key, so all its changes are sent one after the other.",
    "advice: Webhook log: a change has waited for 120 minutes.",
    "advice: Webhook log: 1 delivery failed too often.",
  ]);
  expect(
    await problemsAfter(`
      alter table logs add id serial primary key; delete from content_service.webhook_deliveries;
      update api.webhooks set disabled_because = 'No.'`),
  ).toEqual(["advice: Webhook log: nothing is sent: No."]);
  const fixAfter = async (reason: string) => {
    await owner.query("update api.webhooks set disabled_because = $1", [reason]);
    return (await readWebhookFindings(owner)).map(({ fix }) => fix);
  };
  expect(await fixAfter("The receiver answered 410")).toEqual([
    "update api.webhooks set is_enabled = true where name = 'log';",
  ]);
  expect(await fixAfter("10.0.0.1 is no public address (see WEBHOOK_NETWORK)")).toEqual([
    "Change its url, or WEBHOOK_NETWORK; afterwards update its row, which starts it again.",
  ]);
  expect(await problemsAfter("drop table logs; update api.webhooks set name = name")).toEqual([
    "advice: Webhook log: the table public.logs does not exist.",
  ]);
});

test("a database without webhooks has no findings of them", async () => {
  const empty = await cloneDatabase("empty");
  try {
    const other = await connect(empty.ownerUrl);
    expect(await readWebhookFindings(other)).toEqual([]);
    await other.end();
  } finally {
    await empty.drop();
  }
});
