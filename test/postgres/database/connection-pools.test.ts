import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { Cluster } from "../../../cluster/embedded/cluster.ts";
import { type Database, openDatabase } from "../../../postgres/database/database.ts";
import { useFolder } from "../../fixture.ts";
import { postmasterOf } from "../../postmaster.ts";
import { startServer } from "../../server-binaries.ts";
import { until } from "../../until.ts";
import { anon, PID, sql } from "./open.ts";

const MOST_CONNECTIONS = 24;

let cluster: Cluster;
let database: Database;
let logged: string[];

async function start(): Promise<void> {
  const settings = { max_connections: String(MOST_CONNECTIONS) };
  cluster = await startServer({ dataDir, port: null, settings });
}

async function kill(): Promise<void> {
  process.kill(await postmasterOf(dataDir), "SIGKILL");
  await cluster.ended;
}

async function asSuperuser<T>(work: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client({ connectionString: cluster.url("postgres", "postgres") });
  client.on("error", () => {});
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end();
  }
}

const status = () => database.state().status;
async function becomes(wanted: string): Promise<void> {
  await until(() => status() === wanted);
}

const dataDir = useFolder("content-service-outage-");
beforeAll(async () => {
  await start();
  await asSuperuser((client) =>
    client.query(`
      create role anon; create role authenticator login noinherit; grant anon to authenticator;
      create table entries (id int primary key); grant all on entries to anon`),
  );
});

beforeEach(() => {
  logged = [];
  const log = {
    info: (_fields: object, message: string) => void logged.push(message),
    warn: (_fields: object, message: string) => void logged.push(message),
  };
  const url = cluster.url("authenticator", "postgres");
  database = openDatabase({ url, ownerUrl: cluster.url("postgres", "postgres"), log, acquireTimeout: 3_000 });
  return () => database.close();
});

afterAll(() => cluster.stop());

const read = () => database.run(anon, sql("select 'read'"), { readOnly: true });

describe("while the database is unavailable", () => {
  test("requests wait for it, are then refused with 503 and Retry-After, and the log says it once", async () => {
    await read();
    await cluster.stop();
    const began = performance.now();
    const requests = [
      ...Array.from({ length: 50 }, () => read()),
      database.run(anon, sql("insert into entries values (-1)")),
      database.transaction(anon, (query) => query(PID)),
      database.asOwner((client) => client.query("select 1")),
      database.stream(anon, PID, { separator: "" }).next(),
    ];
    for (const result of await Promise.allSettled(requests)) {
      expect(result).toMatchObject({
        status: "rejected",
        reason: { kind: "unavailable", code: "PGRST000", retryAfterSeconds: 1 },
      });
    }
    expect(performance.now() - began).toBeGreaterThan(2_000);
    expect(database.state()).toMatchObject({ status: "down", reason: expect.stringContaining("ENOENT") });
    await start();
    await becomes("up");
    expect((await read()).rows).toEqual([["read"]]);
    expect(logged.filter((message) => message.includes("away"))).toHaveLength(1);
    expect(logged.filter((message) => message.includes("back"))).toHaveLength(1);
  });

  test("waiting requests are served when it returns in time", async () => {
    await read();
    await cluster.stop();
    await becomes("down");
    const waiting = [read(), database.run(anon, PID), database.asOwner((client) => client.query("select 1"))];
    await start();
    expect(await Promise.all(waiting)).toHaveLength(3);
  });

  test("the database may also be unavailable at the start", async () => {
    const url = cluster.url("authenticator", "postgres");
    await cluster.stop();
    const early = openDatabase({ url, ownerUrl: url, log: { info() {}, warn() {} }, acquireTimeout: 300 });
    await expect(early.run(anon, PID)).rejects.toMatchObject({ kind: "unavailable", code: "PGRST000" });
    await start();
    await until(() => early.state().status === "up");
    await early.run(anon, PID);
    await early.close();
  });

  test("closing does not wait for the database", async () => {
    const url = cluster.url("authenticator", "postgres");
    const forsaken = openDatabase({ url, ownerUrl: url, log: { info() {}, warn() {} } });
    await forsaken.run(anon, PID);
    await cluster.stop();
    await until(() => forsaken.state().status === "down");
    await forsaken.close();
    // It ended while the database was away, and for good.
    expect(forsaken.state().status).toBe("down");
    await start();
    await expect(forsaken.run(anon, PID)).rejects.toThrow();
  });
});

/** Reads and writes without pause until it is stopped, and counts the answers. */
function traffic(firstId: number) {
  const acknowledged: number[] = [];
  const unknown: number[] = [];
  const failures: unknown[] = [];
  let isOn = true;
  let id = firstId;
  const reader = async () => {
    while (isOn) await read().catch((error) => failures.push(error));
  };
  const writer = async () => {
    while (isOn) {
      const mine = id++;
      await database.run(anon, sql("insert into entries values ($1)", String(mine))).then(
        () => acknowledged.push(mine),
        (error) => (error.code === "08007" ? unknown.push(mine) : failures.push(error)),
      );
    }
  };
  const done = Promise.all([reader(), reader(), reader(), reader(), writer(), writer(), writer(), writer()]);
  const stop = async () => {
    isOn = false;
    await done;
    const stored = await asSuperuser((client) => client.query("select id from entries where id >= $1", [firstId]));
    const ids = new Set(stored.rows.map((row) => row.id as number));
    return { acknowledged, unknown, failures, missing: acknowledged.filter((one) => !ids.has(one)), stored: ids.size };
  };
  return { stop };
}

describe("when Postgres is killed during work", () => {
  test("one backend by SIGKILL: Postgres restarts them all, reads are answered, no acknowledged write is missing", async () => {
    const { stop } = traffic(1_000_000);
    await sleep(200);
    const [[pid]] = (await database.run(anon, PID)).rows as [[string]];
    process.kill(Number(pid), "SIGKILL");
    await sleep(200);
    await becomes("up");
    await read();
    await sleep(200);
    const { acknowledged, failures, missing, unknown, stored } = await stop();
    expect(failures).toEqual([]);
    expect(missing).toEqual([]);
    expect(acknowledged.length).toBeGreaterThan(20);
    expect(unknown.length).toBeGreaterThan(0);
    expect(stored).toBeGreaterThanOrEqual(acknowledged.length);
  });

  test("the server by SIGKILL: after its restart no acknowledged write is missing, and the service recovers by itself", async () => {
    const { stop } = traffic(2_000_000);
    await sleep(200);
    await kill();
    await start();
    await becomes("up");
    await read();
    await sleep(200);
    const { acknowledged, failures, missing } = await stop();
    expect(failures.filter((error) => (error as { status: number }).status !== 503)).toEqual([]);
    expect(missing).toEqual([]);
    expect(acknowledged.length).toBeGreaterThan(20);
    expect(status()).toBe("up");
  });
});

describe("when the server has no free connection", () => {
  async function occupyAll(): Promise<pg.Client[]> {
    const clients: pg.Client[] = [];
    for (;;) {
      const client = new pg.Client({ connectionString: cluster.url("authenticator", "postgres") });
      client.on("error", () => {});
      try {
        await client.connect();
      } catch (error) {
        expect(error).toMatchObject({ code: "53300" });
        return clients;
      }
      clients.push(client);
    }
  }

  test("requests with a connection continue, the others wait, and then fail with a timeout", async () => {
    await read();
    const clients = await occupyAll();
    expect((await read()).rows).toEqual([["read"]]);
    const refused = database.run(anon, PID);
    refused.catch(() => {});
    await until(() => database.state().isShort);
    await expect(refused).rejects.toMatchObject({ kind: "timeout", code: "PGRST003" });
    expect(logged).toEqual(["cannot open another database connection; going on with those that are open"]);
    expect(status()).toBe("up");
    const waiting = database.run(anon, PID);
    await Promise.all(clients.map((client) => client.end()));
    expect((await waiting).rows).toHaveLength(1);
    expect(database.state().isShort).toBe(false);
  });

  test("the engine takes at most half of the free connections", async () => {
    await read();
    await Promise.all(Array.from({ length: 200 }, () => database.run(anon, sql("select pg_sleep(0.01)"))));
    const { pools: lanes } = database.state();
    const most = Object.values(lanes).reduce((sum, pool) => sum + pool.max, 0);
    expect(most).toBeLessThanOrEqual(MOST_CONNECTIONS / 2);
    expect(lanes.write.connections).toBe(lanes.write.max);
  });
});
