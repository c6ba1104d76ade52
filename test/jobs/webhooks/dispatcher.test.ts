import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { readConfig } from "../../../config/config.ts";
import { startWebhooks } from "../../../jobs/webhooks/dispatcher.ts";
import { withClient } from "../../../postgres/client/with-client.ts";
import type { AsOwner } from "../../../postgres/database/owner-pool.ts";
import type { Service } from "../../../service/wiring/service.ts";
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
const waiting = async () => (await owner.query("select * from content_service.webhook_deliveries order by id")).rows;

const webhook = async () => (await owner.query("select * from api.webhooks")).rows[0];

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

  test("are not sent by a gateway with WEBHOOKS=false", async () => {
    const asOwner: AsOwner = (work) => withClient(database.ownerUrl, work);
    const { config } = readConfig({ WEBHOOKS: "false" });
    expect(await startWebhooks({ asOwner, config } as never)).toBeNull();
  });

  test("send what the role may read as it was at the change, and no other rows and columns", async () => {
    await start();
    await addWebhook({ role: "authenticated", claims: JSON.stringify({ sub: "ann" }) });
    await owner.query("insert into orders (id, customer, secret_note) values (1, 'ann', 'x'), (2, 'bob', 'y')");
    await owner.query("update orders set customer = 'bob', status = 'sold' where id = 1");
    await owner.query("update orders set customer = 'ann' where id = 2");
    await owner.query("delete from orders");
    await until(async () => receiver.requests.length >= 3 && (await waiting()).length === 0);
    expect(payloads().map(({ type, record, old_record: old }) => ({ type, record, old }))).toEqual([
      { type: "INSERT", record: { id: 1, status: "new", total: 0, customer: "ann" }, old: null },
      { type: "UPDATE", record: { id: 2, status: "new", total: 0, customer: "ann" }, old: null },
      { type: "DELETE", record: null, old: { id: 2, status: "new", total: 0, customer: "ann" } },
    ]);
  });

  test("send no column that the role could not read when it was dropped", async () => {
    await addWebhook({ role: "authenticated", claims: JSON.stringify({ sub: "ann" }) });
    await owner.query("insert into orders (id, customer, secret_note) values (1, 'ann', 'x')");
    await owner.query("alter table orders drop column secret_note");
    await start();
    await until(() => receiver.requests.length === 1);
    expect(payloads()[0]!.record).toEqual({ id: 1, status: "new", total: 0, customer: "ann" });
  });

  test("send the rows of their filter, which is evaluated on the new row, or the deleted one", async () => {
    await start();
    await addWebhook({ where: "or=(status.eq.paid,total.gte.100)&customer=not.is.null" });
    await owner.query(
      "insert into orders (id, status, total, customer) values (1, 'paid', 1, 'a'), (2, 'new', 100, 'a'), (3, 'new', 9, 'a')",
    );
    await owner.query("update orders set status = 'paid' where id = 3");
    await owner.query("update orders set customer = null where id = 1");
    await owner.query("delete from orders");
    await until(async () => receiver.requests.length >= 5 && (await waiting()).length === 0);
    const sent = payloads().map(({ type, record, old_record: old }) => `${type} ${(record ?? old)!.id}`);
    expect(sent.sort()).toEqual(["DELETE 2", "DELETE 3", "INSERT 1", "INSERT 2", "UPDATE 3"]);
  });

  test.each([
    ["refers to no column", { where: "nothing=eq.1" }, "nothing"],
    [
      "refers to a column that the role may not read",
      { where: "secret_note=eq.1", role: "authenticated" },
      "secret_note",
    ],
    ["is no condition", { where: "select=id" }, "conditions"],
    ["has a value that is none of the column's type", { where: "total=gt.lots" }, "lots"],
    ["concerns related rows", { where: "people.name=eq.x" }, "related"],
  ])("whose filter %s are disabled with the reason, and lose nothing", async (_, values, reason) => {
    await start();
    await addWebhook(values);
    await owner.query("insert into orders (id) values (1)");
    await until(async () => (await webhook()).disabled_because !== null);
    expect((await webhook()).disabled_because).toContain(reason);
    await owner.query("update orders set status = 'paid'");
    expect(receiver.requests).toEqual([]);
    await owner.query(`update api.webhooks set "where" = null, role = 'service_role'`);
    await until(() => receiver.requests.length === 2);
    expect(payloads().map(({ type }) => type)).toEqual(["INSERT", "UPDATE"]);
  });

  test("send the changes of a row again and again until the receiver takes them, and those of other rows meanwhile", async () => {
    await start();
    await addWebhook();
    let refusals = 2;
    receiver.respond = (response, { body }) => {
      response.statusCode = JSON.parse(body).record.id === 1 && refusals-- > 0 ? 422 : 204;
      response.end();
    };
    await owner.query("insert into orders (id) values (1), (2)");
    await owner.query("update orders set status = 'paid'");
    await until(async () => receiver.requests.length >= 6 && (await waiting()).length === 0);
    const sentOf = (id: number) => receiver.requests.filter(({ body }) => JSON.parse(body).record.id === id);
    expect(sentOf(1).map(({ body }) => JSON.parse(body).type)).toEqual(["INSERT", "INSERT", "INSERT", "UPDATE"]);
    expect(
      new Set(
        sentOf(1)
          .slice(0, 3)
          .map(({ id }) => id),
      ).size,
    ).toBe(1);
    expect(sentOf(2)).toHaveLength(2);
  });

  test("keep deliveries that failed too often, and send them again when they are replayed", async () => {
    await start();
    await addWebhook({ max_attempts: 1 });
    receiver.respond = (response) => {
      response.statusCode = 400;
      response.end();
    };
    await owner.query("insert into orders (id) values (1)");
    await until(async () => (await waiting())[0]?.state === "dead");
    expect((await waiting())[0]).toMatchObject({ attempts: 1, last_error: "The response has the status 400" });
    receiver.respond = (response) => void response.end();
    await owner.query("update orders set status = 'later'");
    await until(() => receiver.requests.length === 2);
    await owner.query("select api.replay_webhook_deliveries('orders')");
    await until(async () => (await waiting()).length === 0);
    expect(payloads().map(({ type }) => type)).toEqual(["INSERT", "UPDATE", "INSERT"]);
    expect(receiver.requests[2]!.id).toBe(receiver.requests[0]!.id);
  });

  test("whose URL this process may not call are stopped, and lose nothing", async () => {
    await start();
    await addWebhook({ url: "http://10.0.0.5/hook" });
    await owner.query("insert into orders (id) values (1)");
    await until(async () => (await webhook()).disabled_because !== null);
    expect(await webhook()).toMatchObject({
      is_enabled: true,
      disabled_because: expect.stringContaining("WEBHOOK_NETWORK"),
    });
    await owner.query("insert into orders (id) values (2)");
    await owner.query("update api.webhooks set url = $1", [receiver.url]);
    await until(() => receiver.requests.length === 2);
    expect(payloads().map(({ record }) => record!.id)).toEqual([1, 2]);
  });

  test("whose receiver is gone are disabled, and record no more", async () => {
    await start();
    await addWebhook();
    receiver.respond = (response) => {
      response.statusCode = 410;
      response.end();
    };
    await owner.query("insert into orders (id) values (1)");
    await until(async () => (await webhook()).disabled_because !== null);
    expect(await webhook()).toMatchObject({ is_enabled: false, disabled_because: "The response has the status 410" });
    await owner.query("insert into orders (id) values (2)");
    expect(await waiting()).toHaveLength(1);
    receiver.respond = (response) => void response.end();
    await owner.query("update api.webhooks set is_enabled = true");
    await until(() => receiver.requests.length === 2);
  });

  test("keep rows that are too large as dead deliveries", async () => {
    await start();
    await addWebhook();
    await owner.query("insert into orders (id, customer) values (1, repeat('x', 2000000))");
    await until(async () => (await waiting())[0]?.state === "dead");
    expect((await waiting())[0]).toMatchObject({ key: "1", last_error: "The row has more than 1 MiB" });
    expect(receiver.requests).toEqual([]);
  });

  test("do not send a row whose policy reads a column that had another name at the change", async () => {
    await owner.query("alter table orders rename customer to buyer");
    await addWebhook({ role: "authenticated", claims: JSON.stringify({ sub: "ann" }) });
    await owner.query("insert into orders (id, buyer) values (1, 'ann')");
    await owner.query("alter table orders rename buyer to customer");
    await start();
    await until(async () => (await waiting())[0]?.state === "dead");
    expect((await waiting())[0].last_error).toContain("customer");
  });

  test("use a changed URL and secret for all that is sent after the change", async () => {
    await start();
    await addWebhook({ url: "http://127.0.0.1:1/" });
    await owner.query("insert into orders (id) values (1)");
    await until(async () => (await waiting())[0]?.attempts > 0);
    const secret = `whsec_${Buffer.alloc(32, 7).toString("base64")}`;
    await owner.query("update api.webhooks set url = $1, secret = $2", [receiver.url, secret]);
    await expect.poll(() => receiver.requests.length === 1).toBe(true);
    verify(receiver.requests[0]!, secret);
  });

  test("are counted: what was sent, what waits, and for how long", async () => {
    const service = await serve(database, { ...SETTINGS, ADMIN_PORT: "0" });
    services.push(service);
    const samples = async () => {
      const [metrics] = (await service.operations.measure()) as {
        name: string;
        values: { labels: object; value: number }[];
      }[][];
      const found = metrics!.filter(({ name }) => name.startsWith("content_service_webhook"));
      return Object.fromEntries(
        found.flatMap(({ name, values }) =>
          values.map(({ labels, value }) => [
            [name.slice("content_service_".length), ...Object.values(labels)].join(" "),
            value,
          ]),
        ),
      );
    };
    await addWebhook({ where: "total=gt.0", max_attempts: 1 });
    receiver.respond = (response, { body }) => {
      response.statusCode = JSON.parse(body).record.id === 1 ? 200 : 400;
      response.end();
    };
    await owner.query("insert into orders (id, total) values (1, 1), (2, 1), (3, 0)");
    await until(async () => (await waiting()).length === 1 && (await waiting())[0].state === "dead");
    expect(await samples()).toEqual({
      "webhook_deliveries_total delivered": 1,
      "webhook_deliveries_total failed": 1,
      "webhook_deliveries_total dead": 1,
      "webhook_deliveries_total hidden": 1,
      "webhook_deliveries pending": 0,
      "webhook_deliveries dead": 1,
      webhook_oldest_seconds: 0,
    });
  });

  test("have the time of their last delivery, which changes that are hidden or fail do not set", async () => {
    const deliveredAt = async () =>
      (await owner.query("select delivered_at from content_service.webhook_leases")).rows[0]?.delivered_at;
    await start();
    await addWebhook({ where: "total=gt.0", max_attempts: 1 });
    receiver.respond = (response, { body }) => {
      response.statusCode = JSON.parse(body).record.id === 1 ? 200 : 400;
      response.end();
    };
    await owner.query("insert into orders (id, total) values (2, 1), (3, 0)");
    await until(async () => (await waiting()).length === 1 && (await waiting())[0].state === "dead");
    expect(await deliveredAt()).toBeNull();
    await owner.query("insert into orders (id, total) values (1, 1)");
    await until(async () => (await waiting()).length === 1 && (await deliveredAt()) !== null);
  });

  test("are sent by a process that is started later, with what was recorded before", async () => {
    await addWebhook();
    await owner.query("insert into orders (id) values (1)");
    const first = await start();
    await until(() => receiver.requests.length === 1);
    await first.stop();
    const { rows } = await owner.query("select holder, delivered_at from content_service.webhook_leases");
    expect(rows).toEqual([{ holder: null, delivered_at: expect.any(Date) }]);
    await owner.query("insert into orders (id) values (2)");
    await start();
    await until(() => receiver.requests.length === 2);
  });

  test("follow their table when it is renamed, and are disabled when it is dropped", async () => {
    await start();
    await addWebhook();
    await owner.query("alter table orders rename to purchases");
    await until(async () => (await webhook()).table_name === "public.purchases");
    await owner.query("insert into purchases (id) values (1)");
    await until(() => receiver.requests.length === 1);
    expect(payloads()[0]).toMatchObject({ table: "purchases", record: { id: 1 } });
    await owner.query("drop table purchases");
    await until(async () => (await webhook()).disabled_because !== null);
    expect((await webhook()).disabled_because).toContain("There is no table public.purchases");
  });

  test("wait for a catalogue that has their table, however long reading it takes", async () => {
    await start();
    const reader = new pg.Client({ connectionString: database.ownerUrl });
    await reader.connect();
    try {
      // The catalogue has the comments; creating a table reads none.
      await reader.query("begin; lock table pg_catalog.pg_description in access exclusive mode");
      await owner.query("create table late (id bigint primary key); grant select on late to service_role");
      await addWebhook({ table_name: "late" });
      await owner.query("insert into late values (1)");
      const waiting = "select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'";
      await until(async () => (await owner.query(waiting)).rowCount! > 0);
      // A webhook is stopped after three failures, a second apart, if its table does not exist.
      await sleep(4_000);
      expect(await webhook()).toMatchObject({ is_enabled: true, disabled_because: null });
    } finally {
      await reader.end();
    }
    await until(() => receiver.requests.length === 1);
    expect(payloads()[0]).toMatchObject({ table: "late", record: { id: 1 } });
  });

  test("go on when all connections to Postgres were lost", async () => {
    await start();
    await addWebhook();
    receiver.respond = (response) => setTimeout(() => response.end(), 20);
    await owner.query("insert into orders (id) select generate_series(1, 300)");
    await until(() => receiver.requests.length > 0);
    await owner.query(
      "select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()",
    );
    await owner.query("insert into orders (id) values (301)");
    await until(async () => (await waiting()).length === 0);
    expect(new Set(payloads().map(({ record }) => record!.id)).size).toBe(301);
  });

  test("evaluate filters on generated columns, and send those that are stored", async () => {
    const { rows } = await owner.query("select current_setting('server_version_num')::int >= 180000 as virtual");
    const kind = rows[0].virtual ? "virtual" : "stored";
    await owner.query(`
      create table public.parts (
        id int primary key, size int, twice int generated always as (size * 2) ${kind}, thrice int generated always as (size * 3) stored
      );
      alter table public.parts enable row level security;
      grant select on public.parts to service_role`);
    await start();
    await addWebhook({ table_name: "parts", where: "twice=gt.6&thrice=lt.30" });
    await owner.query("insert into parts (id, size) values (1, 3), (2, 4), (3, 10)");
    await until(async () => receiver.requests.length > 0 && (await waiting()).length === 0);
    expect(payloads().map(({ record }) => record)).toEqual([
      { id: 2, size: 4, thrice: 12, ...(kind === "stored" && { twice: 8 }) },
    ]);
  });
});
