import { expect, test } from "vitest";
import { LEASE_MS, WebhookStore } from "../../../jobs/webhooks/webhook-store.ts";
import { useClient, useDatabase } from "../../database.ts";

const database = useDatabase();
const owner = useClient(database.ownerUrl);

test("a page of changes is bounded by their text, however well that is compressed in storage", async () => {
  await owner.query("create table public.notes (id integer primary key, note text)");
  const { rows } = await owner.query(
    `insert into api.webhooks (name, table_name, url, role) values ('notes', 'notes', 'https://example.com/', 'service_role')
    returning id`,
  );
  await owner.query(
    "insert into public.notes select number, repeat('x', 1000000) from generate_series(1, 20) as number",
  );
  const store = new WebhookStore((work) => work(owner));
  const loadedIds: string[] = [];
  const read = () => store.readPage(rows[0].id, { loadedIds, blockedKeys: [], columns: null, limit: 500 });
  const sizes: number[] = [];
  for (let page = await read(); page.length > 0; page = await read()) {
    sizes.push(page.length);
    loadedIds.push(...page.map(({ id }) => id));
  }
  expect(sizes).toEqual([5, 5, 5, 5]);
});

test("a process knows when the lease of another one ends, and takes over then", async () => {
  const [first, second] = [new WebhookStore((work) => work(owner)), new WebhookStore((work) => work(owner))];
  expect(await first.lease()).toMatchObject({ webhooks: [{ name: "notes" }], nextExpiryMs: Number.POSITIVE_INFINITY });
  const { webhooks, nextExpiryMs } = await second.lease();
  expect(webhooks).toEqual([]);
  expect(nextExpiryMs).toBeGreaterThan(0);
  expect(nextExpiryMs).toBeLessThanOrEqual(LEASE_MS);
  await owner.query("update content_service.webhook_leases set expires_at = clock_timestamp()");
  expect((await second.lease()).webhooks).toHaveLength(1);
});
