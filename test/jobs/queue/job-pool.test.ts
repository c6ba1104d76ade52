import { EventEmitter, once } from "node:events";
import { afterEach, beforeEach, expect, test } from "vitest";
import { readConfig } from "../../../config/config.ts";
import { JobPool } from "../../../jobs/queue/job-pool.ts";
import { openListener } from "../../../postgres/client/listen.ts";
import { withClient } from "../../../postgres/client/with-client.ts";
import { makeLogger } from "../../../runtime/log/log.ts";
import { cloneDatabase } from "../../database.ts";
import { until } from "../../until.ts";

const log = makeLogger(readConfig({ LOG_LEVEL: "silent" }).config);
let opened: AsyncDisposableStack;
beforeEach(() => {
  opened = new AsyncDisposableStack();
});
afterEach(() => opened.disposeAsync());

async function openPool(max: number, patienceMs?: number) {
  const database = await cloneDatabase("empty");
  opened.defer(() => database.drop());
  const listener = openListener({ url: database.ownerUrl, log });
  opened.defer(() => listener.close());
  const pool = new JobPool(database.ownerUrl, max, patienceMs);
  opened.defer(() => pool.destroy());
  const query = (text: string) => withClient(database.ownerUrl, (client) => client.query(text));
  const countSessions = async (name: string) =>
    (await query(`select from pg_stat_activity where datname = '${database.name}' and application_name = '${name}'`))
      .rowCount!;
  const endSessions = (name: string) =>
    query(
      `select pg_terminate_backend(pid) from pg_stat_activity where datname = '${database.name}' and application_name = '${name}'`,
    );
  return { listener, pool, query, countSessions, endSessions };
}

test("lanes hear of new jobs on the connection of the service, and look for lost ones after an interruption", async () => {
  const { listener, pool, query, countSessions, endSessions } = await openPool(3);
  const heard: { readonly channel: string; readonly payload: string }[] = [];
  const client = await new Promise<EventEmitter & { query(text: string): Promise<void> }>((resolve) =>
    pool.openLane(listener, 3).connect((_, listening) => resolve(listening)),
  );
  client.on("notification", (message) => heard.push(message));
  await client.query('LISTEN "jobs:insert"; LISTEN "worker:migrate";');
  await query(`select pg_notify('jobs:insert', '{"count": 2}')`);
  await until(() => heard.length === 1);
  await endSessions("listener");
  await until(() => heard.length === 2);
  expect(heard.map(({ channel, payload }) => [channel, JSON.parse(payload)])).toEqual([
    ["jobs:insert", { count: 2 }],
    ["jobs:insert", { count: 3 }],
  ]);
  expect(await countSessions("jobs")).toBe(0);
});

test("a client that was released hears nothing more", async () => {
  const { listener, pool, query } = await openPool(1);
  const heard: unknown[] = [];
  const release = await new Promise<() => void>((resolve) =>
    pool.openLane(listener, 1).connect(async (_error, client, releaseClient) => {
      client.on("notification", (message) => heard.push(message));
      await client.query("LISTEN");
      resolve(releaseClient);
    }),
  );
  release();
  const others = new EventEmitter();
  await listener.listen("jobs:insert", (payload) => others.emit("heard", payload));
  const next = once(others, "heard");
  await query("select pg_notify('jobs:insert', '')");
  await next;
  expect(heard).toEqual([]);
});

test("one lane uses the idle connection of another one", async () => {
  const { listener, pool, countSessions } = await openPool(2);
  for (let turn = 0; turn < 4; turn++) {
    const client = await pool.openLane(listener, 1).connect();
    await client.query("select 1");
    client.release();
  }
  expect(await countSessions("jobs")).toBe(1);
});

test("lanes that ask at the same time use one connection, one after the other", async () => {
  const { listener, pool } = await openPool(4, 600_000);
  const lanes = Array.from({ length: 4 }, () => pool.openLane(listener, 1));
  for (let turn = 0; turn < 3; turn++) await Promise.all(lanes.map((lane) => lane.query("select 1")));
  expect(pool.totalCount).toBe(1);
});

test("a lane gets a connection of its own if another one keeps its connection", async () => {
  const { listener, pool } = await openPool(2, 1);
  const held = await pool.openLane(listener, 1).connect();
  expect((await pool.openLane(listener, 1).query("select 1 as one")).rows).toEqual([{ one: 1 }]);
  expect(pool.totalCount).toBe(2);
  held.release();
});

test("a lane that is closed loses the connections that it holds, and others get their room", async () => {
  const { listener, pool } = await openPool(1);
  const [ended, next] = [pool.openLane(listener, 1), pool.openLane(listener, 1)];
  const held = await ended.connect();
  const running = held.query("select pg_sleep(600)").catch((error: Error) => error);
  const waiting = ended.connect().catch((error: Error) => error.message);
  const later = next.query("select 1 as one");
  ended.close();
  held.release();
  expect(await running).toBeInstanceOf(Error);
  expect(await waiting).toBe("The lane is closed");
  expect((await later).rows).toEqual([{ one: 1 }]);
  await expect(ended.connect()).rejects.toThrow("The lane is closed");
});

test("a pool that is destroyed refuses who waits, in all lanes", async () => {
  const { listener, pool } = await openPool(1);
  const lane = pool.openLane(listener, 1);
  await lane.connect();
  const waiting = pool.openLane(listener, 1).connect();
  const refused = expect(waiting).rejects.toThrow("The lane is closed");
  pool.destroy();
  await refused;
});
