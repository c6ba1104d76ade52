import pg from "pg";
import { afterEach, describe, expect, test } from "vitest";
import type { Service } from "../../../service/wiring/service.ts";
import { cloneDatabase, type TestDatabase } from "../../database.ts";
import { serve } from "../../serve.ts";
import { until } from "../../until.ts";
import { type Receiver, startReceiver } from "./receiver.ts";

const KEYS = 1_500;

describe("webhooks whose receiver", () => {
  let database: TestDatabase;
  let client: pg.Client;
  let receiver: Receiver;
  let service: Service;
  /** The number of each row that was received last. */
  let received: Map<number, number>;
  let faults: string[];

  /** The timeout is long: a change whose response is not read in time on a busy machine is sent again. */
  async function open(timeout = "60 seconds"): Promise<void> {
    receiver = await startReceiver();
    database = await cloneDatabase("platform");
    client = await connect();
    await client.query("create table public.orders (id int primary key, number int not null)");
    await client.query(`insert into public.orders select id, 0 from generate_series(1, ${KEYS}) id`);
    await client.query("grant select on public.orders to service_role");
    await client.query(
      "insert into api.webhooks (name, table_name, events, url, role, timeout) values ('orders', 'public.orders', '{UPDATE}', $1, 'service_role', $2)",
      [receiver.url, timeout],
    );
    service = await serve(database, { BASE_SCHEMA: "platform", WEBHOOK_NETWORK: "loopback" });
    received = new Map();
    faults = [];
  }

  afterEach(async () => {
    await service.stop();
    await client.end();
    await receiver.close();
    await database.drop();
  });

  async function connect(): Promise<pg.Client> {
    const opened = new pg.Client({ connectionString: database.ownerUrl });
    await opened.connect();
    return opened;
  }

  const update = (by: pg.Client, condition = "true") =>
    by.query(`update public.orders set number = number + 1 where ${condition}`);
  const rowOf = (body: string): { id: number; number: number } => JSON.parse(body).record;

  /** Accepts all, and notes requests that come too early or again. */
  const accept: Receiver["respond"] = (response, { body }) => {
    const { id, number } = rowOf(body);
    const last = received.get(id) ?? 0;
    if (number !== last + 1) faults.push(`${id}:${number} after ${last}`);
    received.set(id, number);
    response.end();
  };

  async function untilDelivered(number: number): Promise<void> {
    await until(
      async () => (await client.query("select from content_service.webhook_deliveries limit 1")).rows.length === 0,
    );
    expect([...received.values()].filter((each) => each !== number)).toEqual([]);
    expect(faults).toEqual([]);
  }

  test("is away while many changes are made gets all of them, in order, when it is back", async () => {
    await open();
    await receiver.close();
    await update(client);
    await until(
      async () =>
        (await client.query("select from content_service.webhook_deliveries where attempts > 0")).rows.length > 4,
    );
    await update(client);
    receiver.respond = accept;
    await receiver.reopen();
    await untilDelivered(2);
    expect(received.size).toBe(KEYS);
  });

  test("fails in the middle of many changes gets the rest when it accepts them again", async () => {
    await open();
    const [first, last] = [1_000, 1_070];
    receiver.respond = (response, request) => {
      const { length } = receiver.requests;
      if (length < first || length > last) accept(response, request);
      else response.writeHead(503).end();
    };
    await update(client);
    await untilDelivered(1);
    expect(receiver.requests.length).toBeGreaterThan(last);
    expect(received.size).toBe(KEYS);
  });

  test("fails, hangs or closes connections gets each change in order when it accepts them", async () => {
    await open("1 second");
    let requests = 0;
    receiver.respond = (response, request) => {
      requests++;
      if (requests % 5 === 1) response.writeHead(503).end();
      else if (requests % 5 === 2) response.socket!.destroy();
      else if (requests !== 8) accept(response, request);
    };
    for (let number = 0; number < 3; number++) await update(client, "id <= 4");
    await untilDelivered(3);
    expect(received.size).toBe(4);
  });

  test("refuses a change while the next one of the row is being read gets them in order", async () => {
    await open();
    let refuse = () => {};
    receiver.respond = (response) => {
      refuse = () => void response.writeHead(422).end();
    };
    await update(client, "id = 1");
    await until(() => receiver.requests.length === 1);
    receiver.respond = accept;

    const locker = await connect();
    await locker.query("begin");
    await locker.query("lock table content_service.webhook_deliveries in access exclusive mode");
    await update(locker, "id = 1");
    // The page with the second change is being read.
    await expect
      .poll(async () => {
        const { rows } = await client.query(
          "select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock' and query like '%webhook_deliveries%'",
        );
        return rows.length > 0;
      })
      .toBe(true);
    refuse();
    // The response is read by this process, too.
    for (let rounds = 0; rounds < 1_000; rounds++) await new Promise(setImmediate);
    await locker.query("commit");
    await locker.end();
    await untilDelivered(2);
  });
});
