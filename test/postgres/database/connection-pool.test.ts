import { setTimeout as sleep } from "node:timers/promises";
import { beforeEach, describe, expect, test } from "vitest";
import { makeRequestSteps } from "../../../postgres/database/batch-steps.ts";
import { PostgresConnection } from "../../../postgres/database/connection.ts";
import { ConnectionPool } from "../../../postgres/database/connection-pool.ts";
import { acquireTimeout } from "../../../postgres/database/database-errors.ts";
import { openPostgresSocket, type PostgresSocket } from "../../../postgres/database/postgres-socket.ts";
import { UNLIMITED } from "../../../postgres/database/response-budget.ts";
import { CollectedRows } from "../../../postgres/database/result-collectors.ts";
import { StatementExecution } from "../../../postgres/database/statement-execution.ts";
import { StatementShape } from "../../../postgres/database/statement-shape.ts";
import { useFixture } from "../../fixture.ts";
import { until } from "../../until.ts";
import { anon, open, sql } from "./open.ts";

const opened = useFixture(open);

const HOUR = 3_600_000;

let sockets: PostgresSocket[] = [];
beforeEach(() => {
  sockets = [];
});

/** A lane of its own, driven by hand. */
function makePool(depth: number, most: number, least = 0): ConnectionPool {
  const pool = new ConnectionPool({
    depth,
    least,
    open: async (events) => {
      const socket = await openPostgresSocket({ url: opened.url, applicationName: "lane", connectTimeout: 5_000 });
      sockets.push(socket);
      return new PostgresConnection(socket, events, { depth, maxPrepared: 10 });
    },
    refusal: acquireTimeout,
  });
  pool.resize(most);
  return pool;
}

function ask(
  pool: ConnectionPool,
  text: string,
  { responseTimeoutMs = HOUR, expires = Number.POSITIVE_INFINITY, readOnly = true, earlierRuns = [] as number[] } = {},
): Promise<string> {
  const shape = new StatementShape(text);
  for (const milliseconds of earlierRuns) shape.ran(milliseconds, { caller: "anon" });
  const terms = { readOnly, statementTimeout: 0, lockTimeout: 0, timeoutMs: undefined, before: [] };
  const steps = makeRequestSteps(shape, sql(text), anon, terms);
  const question = {
    pace: shape,
    context: anon,
    isAnonymous: false,
    steps,
    main: 2,
    mainCount: 1,
    wantsFields: false,
    responseTimeoutMs,
    readOnly,
    expires,
    allowance: UNLIMITED,
    signal: undefined,
  };
  const rows = CollectedRows.ofStrings();
  return new Promise((resolve, reject) => {
    new StatementExecution(pool, question, rows, { resolve: () => resolve(rows.rows[0]![0]!), reject }).submit();
  });
}

const nap = (pool: ConnectionPool, seconds: number) =>
  ask(pool, `select pg_sleep(${seconds})::text || pg_backend_pid()`);

describe("a connection pool", () => {
  test("opens connections as they are needed, up to its size, and further requests wait in the queue", async () => {
    const pool = makePool(1, 3);
    expect(pool.connections).toHaveLength(0);
    const pids = await Promise.all(Array.from({ length: 9 }, () => nap(pool, 0.02)));
    expect(pool.connections).toHaveLength(3);
    expect(new Set(pids).size).toBe(3);
    await pool.drain();
  });

  test("uses a single connection while one is enough", async () => {
    const pool = makePool(4, 4);
    for (let index = 0; index < 10; index++) await nap(pool, 0);
    expect(pool.connections).toHaveLength(1);
    await Promise.all(Array.from({ length: 64 }, () => nap(pool, 0.002)));
    expect(pool.connections.length).toBeGreaterThan(1);
    await pool.drain();
  });

  test.each([
    { what: "sends together what is known to be brief", earlierRuns: [0.1, 0.1, 0.1], links: 1 },
    { what: "spreads what is not brief, or not known to be", earlierRuns: [2, 2, 20, 2], links: 2 },
    { what: "spreads what is new", earlierRuns: [], links: 2 },
  ])("$what", async ({ earlierRuns, links }) => {
    const pool = makePool(4, 2, 2);
    await until(() => pool.connections.length >= 2);
    const pid = () => ask(pool, "select pg_backend_pid()::text", { earlierRuns });
    const pids = await Promise.all([pid(), pid(), pid(), pid()]);
    expect(new Set(pids).size).toBe(links);
    await pool.drain();
  });

  test("sends a batch without delay when a connection is at its maximum", async () => {
    const pool = makePool(4, 2, 2);
    await until(() => pool.connections.length >= 2);
    const pid = () => ask(pool, "select pg_backend_pid()::text", { earlierRuns: [0.1, 0.1, 0.1] });
    const pids = await Promise.all([pid(), pid(), pid(), pid(), pid()]);
    expect(new Set(pids.slice(0, 4)).size).toBe(1);
    expect(pids[4]).not.toBe(pids[0]);
    await pool.drain();
  });

  test("pipelines reads while their expected total time is short, and the others wait", async () => {
    const pool = makePool(64, 1, 1);
    await until(() => pool.connections.length >= 1);
    const askAll = (earlierRuns: number[]) =>
      Array.from({ length: 50 }, () => ask(pool, "select 'read'", { earlierRuns }));
    const brief = askAll([0.1, 0.1, 0.1]);
    expect([pool.inFlight, pool.waiting]).toEqual([50, 0]);
    await Promise.all(brief);
    const longer = askAll(new Array(50).fill(2.9));
    expect([pool.inFlight, pool.waiting]).toEqual([4, 46]);
    await Promise.all(longer);
    await pool.drain();
  });

  test("sends all requests of one turn of the event loop in one write", async () => {
    const pool = makePool(64, 1, 1);
    await until(() => pool.connections.length >= 1);
    const [socket] = sockets;
    const { write } = socket!;
    let writes = 0;
    Object.assign(socket!, {
      write(chunks: Buffer[]) {
        writes++;
        write(chunks);
      },
    });
    await Promise.all(Array.from({ length: 50 }, () => ask(pool, "select 'read'", { earlierRuns: [0.1, 0.1, 0.1] })));
    expect(writes).toBe(1);
    await pool.drain();
  });

  test("serves waiting requests in their order", async () => {
    const pool = makePool(1, 1);
    const order: number[] = [];
    await Promise.all(Array.from({ length: 20 }, (_, index) => nap(pool, 0.001).then(() => order.push(index))));
    expect(order).toEqual(Array.from({ length: 20 }, (_, index) => index));
    await pool.drain();
  });

  test("refuses requests that have waited too long, and too many at once", async () => {
    const pool = makePool(1, 1);
    const running = nap(pool, 0.2);
    const late = ask(pool, "select 1", { expires: performance.now() + 10 });
    const outcome = expect(late).rejects.toMatchObject({ kind: "timeout", code: "PGRST003" });
    await sleep(20);
    pool.sweep(performance.now());
    await outcome;
    const crowd = Array.from({ length: 10_002 }, () => ask(pool, "select ''"));
    const refused = (await Promise.allSettled(crowd)).filter(({ status }) => status === "rejected");
    expect(refused.length).toBeGreaterThan(0);
    expect(refused.length).toBeLessThan(10);
    await running;
    await pool.drain();
  });

  test("closes idle connections, down to the minimum", async () => {
    const pool = makePool(1, 4, 1);
    await Promise.all(Array.from({ length: 4 }, () => nap(pool, 0.02)));
    pool.sweep(performance.now());
    expect(pool.connections).toHaveLength(4);
    pool.sweep(performance.now() + 61_000);
    expect(pool.connections).toHaveLength(1);
    await pool.drain();
  });

  test("closes surplus connections, but no busy ones", async () => {
    const pool = makePool(1, 4);
    const running = Array.from({ length: 4 }, () => nap(pool, 0.1));
    await until(() => pool.inFlight >= 4);
    pool.resize(2);
    pool.sweep(performance.now());
    expect(pool.connections).toHaveLength(4);
    await Promise.all(running);
    pool.sweep(performance.now());
    expect(pool.connections).toHaveLength(2);
    await pool.drain();
  });

  test("replaces connections at their maximum age", async () => {
    const pool = makePool(1, 2, 1);
    const before = await nap(pool, 0);
    pool.sweep(performance.now() + 2 * HOUR);
    const after = await nap(pool, 0);
    expect(after).not.toBe(before);
    await pool.drain();
  });

  test("sends a request on another connection if the first was lost before it was sent, even a write", async () => {
    const pool = makePool(1, 1);
    await opened.owner.query("create table unsent (id int); grant all on unsent to anon");
    const before = await nap(pool, 0);
    sockets[0]!.destroy();
    const insert = "insert into unsent values (1) returning pg_backend_pid()::text";
    expect(await ask(pool, insert, { readOnly: false })).not.toBe(before);
    expect((await opened.owner.query("select * from unsent")).rowCount).toBe(1);
    await pool.drain();
  });

  test("drops a connection to a silent server, and a read runs on another one", async () => {
    const pool = makePool(4, 1);
    const before = await nap(pool, 0);
    const running = ask(pool, "select pg_sleep(0.3)::text || pg_backend_pid() -- silent", { responseTimeoutMs: 1_000 });
    await sleep(50);
    pool.sweep(performance.now());
    pool.sweep(performance.now() + 5_000);
    expect(pool.inFlight).toBe(1);
    pool.sweep(performance.now() + 20_000);
    expect(await running).not.toBe(before);
    await pool.drain();
  });
});

describe("a connection that is lost before it joins the pool", () => {
  test.each(["before anybody listens to it", "before the lane has it"])("%s is not added", async (when) => {
    let isFirst = true;
    const pool = new ConnectionPool({
      depth: 1,
      least: 0,
      open: async (events) => {
        const socket = await openPostgresSocket({ url: opened.url, applicationName: "lane", connectTimeout: 5_000 });
        const lose = async (isLost: () => boolean) => {
          await opened.owner.query("select pg_terminate_backend($1)", [socket.processId]);
          await until(isLost);
        };
        if (isFirst && when === "before anybody listens to it") await lose(() => !socket.isWritable());
        const link = new PostgresConnection(socket, events, { depth: 1, maxPrepared: 10 });
        if (isFirst && when === "before the lane has it") await lose(() => link.isClosed);
        isFirst = false;
        return link;
      },
      refusal: acquireTimeout,
    });
    pool.resize(1);
    expect(await ask(pool, "select 'answered'")).toBe("answered");
    expect(pool.connections).toHaveLength(1);
    await pool.drain();
  });
});

describe("the connection of a statement", () => {
  test("is a separate one until the statement has proved to be fast, and again after it was slow", async () => {
    const { database } = opened;
    const statement = (seconds: number) => sql("select pg_sleep($1::float)", String(seconds));
    const laneOf = async (seconds: number) => {
      const running = database.run(anon, statement(seconds), { readOnly: true });
      const { read, slow } = database.state().pools;
      await running;
      return read.inFlight > 0 ? "read" : slow.inFlight + slow.waiting > 0 ? "slow" : "elsewhere";
    };
    const lanes = [];
    for (let index = 0; index < 4; index++) lanes.push(await laneOf(0));
    expect(lanes.slice(0, 3)).toEqual(["slow", "slow", "slow"]);
    for (let index = 0; index < 20; index++) await laneOf(0);
    // On a busy machine any of these runs may be slow by itself.
    do while ((await laneOf(0)) !== "read");
    while ((await laneOf(0.05)) !== "read");
    expect(await laneOf(0)).toBe("slow");
    while ((await laneOf(0)) !== "read");
  });

  test("is of the write pool for a write", async () => {
    const running = opened.database.run(anon, sql("select pg_sleep(0.05)"));
    const { write } = opened.database.state().pools;
    expect(write.inFlight + write.waiting).toBe(1);
    await running;
  });
});
