import pg from "pg";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { Service } from "../../../service.ts";
import { cloneDatabase, type TestDatabase } from "../../database.ts";
import { serve } from "../../serve.ts";
import { until } from "../../until.ts";
import { type Receiver, startReceiver, verify } from "./receiver.ts";

type Payload = {
  readonly type: string;
  readonly schema: string;
  readonly table: string;
  readonly record: Record<string, unknown> | null;
  readonly old_record: Record<string, unknown> | null;
};

let database: TestDatabase;
let owner: pg.Client;
let receiver: Receiver;
let services: Service[] = [];

const SETTINGS = { WEBHOOK_NETWORK: "loopback" };
const TABLES = `
  create table public.orders (
    id bigint primary key, status text not null default 'new', total numeric not null default 0, secret_note text, customer text
  );
  alter table public.orders enable row level security;
  create policy select_own on public.orders for select to authenticated using (customer = (select auth.jwt() ->> 'sub'));
  grant select (id, status, total, customer) on public.orders to authenticated;
  grant select on public.orders to service_role;
  create table public.visits (page text, at integer);
  alter table public.visits enable row level security;
  grant select on public.visits to service_role;`;

beforeEach(async () => {
  database = await cloneDatabase();
  owner = new pg.Client({ connectionString: database.ownerUrl });
  await owner.connect();
  await owner.query(TABLES);
  receiver = await startReceiver();
});

afterEach(async () => {
  await Promise.all(services.map((service) => service.stop()));
  services = [];
  await owner.end();
  await receiver.close();
  await database.drop();
});

async function start(): Promise<Service> {
  const service = await serve(database, SETTINGS);
  services.push(service);
  return service;
}

async function addWebhook(values: Record<string, unknown> = {}): Promise<{ id: string; secret: string }> {
  const row = { name: "orders", table_name: "orders", url: receiver.url, role: "service_role", ...values };
  const names = Object.keys(row).map((name) => `"${name}"`);
  const { rows } = await owner.query(
    `insert into api.webhooks (${names.join()}) values (${names.map((_, at) => `$${at + 1}`).join()}) returning id, secret`,
    Object.values(row),
  );
  return rows[0];
}

const payloads = (): Payload[] => receiver.requests.map(({ body }) => JSON.parse(body));
const waiting = async () => (await owner.query("select * from private.webhook_deliveries order by id")).rows;

describe("webhooks", () => {
  test("send inserted, updated and deleted rows, signed, and forget what was delivered", async () => {
    await start();
    const { secret } = await addWebhook();
    await owner.query("insert into orders (id, total) values (1, 12345678901234567890.10)");
    await owner.query("update orders set status = 'paid'");
    await owner.query("delete from orders");
    await until(() => receiver.requests.length === 3);
    expect(payloads()).toMatchObject([
      { type: "INSERT", schema: "public", table: "orders", record: { id: 1, status: "new" }, old_record: null },
      { type: "UPDATE", record: { status: "paid" }, old_record: { status: "new" } },
      { type: "DELETE", record: null, old_record: { status: "paid" } },
    ]);
    expect(receiver.requests[0]!.body).toContain('"total":12345678901234567890.10');
    for (const request of receiver.requests) verify(request, secret);
    await until(async () => (await waiting()).length === 0);
  });
});
