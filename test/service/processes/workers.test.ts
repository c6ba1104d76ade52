import { once } from "node:events";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { createClient } from "graphql-ws";
import pg from "pg";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import WebSocket from "ws";
import { freePort } from "../../../bench/measuring/free-port.ts";
import { startTimeOf } from "../../../cluster/embedded/processes.ts";
import { useClient, useDatabase } from "../../database.ts";
import { SEED } from "../../db/callers.ts";
import { type Program, startGateway, startProgram, startReady, stopped } from "../../program.ts";
import { anonKey, makeClient, subscribed } from "../../realtime/service.ts";
import { SECRET } from "../../secret.ts";
import { until } from "../../until.ts";
import { ask, openTraffic } from "./traffic.ts";

const PASSWORD = "Tangerine-Boat-7";

let program: Program;

const PAUSE = `
  create function public.pause() returns int language sql volatile as 'select 1 from pg_sleep(0.2)';
  grant execute on function public.pause to anon;`;
/** The connections of the service as a whole. */
const DB_POOL = 12;

const database = useDatabase({ sql: `${SEED}; ${PAUSE}` });
const owner = useClient(database.ownerUrl);
beforeAll(async () => {
  // With 0 there would be another one after all workers have ended.
  const PORT = String(await freePort());
  const settings = { PORT, WEB_CONCURRENCY: "2", DB_POOL: String(DB_POOL), RATE_LIMIT: "0", ADMIN_PORT: "0" };
  program = await startGateway(database, settings);
});
afterAll(() => program.kill());

const at = (path: string) => `${program.url}${path}`;
/** The log's lines, each of which is parsed once. */
const parsed: Record<string, unknown>[] = [];
let parsedLength = 0;
const lines = () => {
  const logged = program.logged();
  const end = logged.lastIndexOf("\n") + 1;
  for (const line of logged.slice(parsedLength, end).split("\n"))
    if (line.startsWith("{")) parsed.push(JSON.parse(line));
  parsedLength = end;
  return parsed;
};
const said = (message: string) => lines().filter(({ msg }) => msg === message);

/** The workers that have answered so many requests, each on a connection of its own. */
async function workersOfRequests(requests: number): Promise<Set<unknown>> {
  const ids = Array.from({ length: requests }, (_, n) => `${performance.now()}/${n}`);
  for (const id of ids) await ask(at("/api/v1/articles"), { headers: { "X-Request-Id": id } });
  const answered = () => lines().filter(({ request }) => ids.includes(String(request)));
  await until(() => answered().length === ids.length);
  return new Set(answered().map(({ worker }) => worker));
}

const post = (path: string, body: object) =>
  fetch(at(path), {
    method: "POST",
    // A connection each: they go to the workers in turn.
    headers: { "Content-Type": "application/json", Connection: "close" },
    body: JSON.stringify(body),
  });

const condition = async () =>
  JSON.parse((await ask(at("/health"))).text) as { status: string; reason?: string; workers: number };

const childrenOf = async (pid: number) =>
  (await readFile(`/proc/${pid}/task/${pid}/children`, "utf8")).trim().split(" ").map(Number);

/** The requests that the workers of now and of before have counted. */
async function countedRequests(): Promise<number> {
  const metrics = /^ *metrics +(\S+)/m.exec(program.printed())![1]!;
  const lines = (await (await fetch(metrics)).text()).split("\n");
  const samples = lines.filter((line) => line.startsWith("content_service_http_requests_total"));
  return samples.reduce((sum, line) => sum + Number(line.split(" ").at(-1)), 0);
}

function expectRising(counts: readonly number[]): void {
  expect(counts[0]).toBeGreaterThan(0);
  expect(counts.toSorted((one, other) => one - other)).toEqual(counts);
}

describe("two workers at one address", () => {
  test("both answer requests, and the log has the worker's number", async () => {
    expect((await workersOfRequests(8)).size).toBe(2);
    expect(program.printed()).toContain("starting 2 processes");
    expect(await childrenOf(program.child.pid!)).toHaveLength(2);
    expect(await condition()).toEqual({ status: "ok", workers: 2 });
    expect(program.printed()).toMatch(/^ {2}workers +2$/m);
  });

  test("are reported together on the admin port", async () => {
    const metrics = /^ *metrics +(\S+)/m.exec(program.printed())![1]!;
    const sumOf = async () => {
      const lines = (await (await fetch(metrics)).text()).split("\n");
      const ours = lines.filter((line) => line.includes('http_requests_total{interface="resource"'));
      return ours.reduce((sum, line) => sum + Number(line.split(" ").at(-1)), 0);
    };
    const before = await sumOf();
    expect((await workersOfRequests(8)).size).toBe(2);
    await until(async () => (await sumOf()) === before + 8);
    expect((await fetch(metrics.replace("/metrics", "/ready"))).status).toBe(200);
  });

  test("share the connections of one pool size", async () => {
    const call = () => ask(at("/rest/v1/rpc/pause"), { method: "POST", headers: { apikey: anonKey } });
    const answers = await Promise.all(Array.from({ length: 2 * DB_POOL }, call));
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]));
    const { rows } = await owner.query<{ links: number }>(
      "select count(*)::int as links from pg_stat_activity where usename = 'authenticator' and datname = current_database()",
    );
    expect(rows[0]!.links).toBeGreaterThan(DB_POOL / 2);
    expect(rows[0]!.links).toBeLessThanOrEqual(DB_POOL);
  });

  test("accept each other's tokens, and exchange a refresh token only once", async () => {
    const registered = await post("/auth/register", { email: "dora@example.org", password: PASSWORD, name: "Dora" });
    const { accessToken, refreshToken } = (await registered.json()) as Record<string, string>;
    for (let n = 0; n < 4; n++) {
      const mine = await ask(at("/rest/v1/articles"), {
        headers: { apikey: anonKey, Authorization: `Bearer ${accessToken}` },
      });
      expect(mine.status).toBe(200);
    }
    const exchanged = await Promise.all(Array.from({ length: 4 }, () => post("/auth/refresh", { refreshToken })));
    expect(exchanged.map(({ status }) => status).sort()).toEqual([200, 401, 401, 401]);
  });

  test("count failed sign-ins together", async () => {
    const wrong = () => post("/auth/login", { username: "dora@example.org", password: "wrong" });
    const statuses: number[] = [];
    for (let n = 0; n < 6; n++) statuses.push((await wrong()).status);
    expect(statuses).toEqual([401, 401, 401, 401, 401, 429]);
  });

  test("both serve a new table", async () => {
    await owner.query("create table public.boats (id int primary key); grant select on public.boats to anon");
    const answers = async () => Promise.all(Array.from({ length: 6 }, () => ask(at("/api/v1/boats"))));
    await expect.poll(async () => (await answers()).every(({ status }) => status === 200)).toBe(true);
  });

  test("both apply a changed setting", async () => {
    const size = async () => {
      const { text } = await ask(at("/rest/v1/articles?select=title"), { headers: { apikey: anonKey } });
      return (JSON.parse(text) as unknown[]).length;
    };
    expect(await size()).toBeGreaterThan(1);
    await owner.query(`alter role authenticator in database ${database.name} set pgrst.db_max_rows = '1'`);
    await owner.query("notify pgrst, 'reload config'");
    await until(async () => (await Promise.all(Array.from({ length: 6 }, size))).every((rows) => rows === 1));
    await owner.query(`alter role authenticator in database ${database.name} reset all`);
    await owner.query("notify pgrst, 'reload config'");
  });

  test("share broadcasts and presence", async () => {
    // Four sockets, in turn two for each worker.
    const clients = Array.from({ length: 4 }, () => makeClient(program.url));
    const heard = clients.map(() => new Set<string>());
    const channels = clients.map((client, n) =>
      client
        .channel("room", { config: { presence: { key: `client ${n}` }, broadcast: { self: true } } })
        .on("broadcast", { event: "word" }, ({ payload }) => heard[n]!.add(payload.from))
        .on("presence", { event: "sync" }, () => {}),
    );
    for (const channel of channels) await subscribed(channel);
    await Promise.all(channels.map((channel) => channel.track({})));
    await until(() => channels.every((channel) => Object.keys(channel.presenceState()).length === 4));
    for (const [n, channel] of channels.entries()) {
      await channel.send({ type: "broadcast", event: "word", payload: { from: `client ${n}` } });
    }
    await until(() => heard.every(({ size }) => size === 4));
    const names = clients.map((_, n) => `client ${n}`);
    expect(heard.map((each) => [...each].sort())).toEqual(clients.map(() => names));
    await Promise.all(clients.map((client) => client.removeAllChannels()));
  });

  test("a killed worker is replaced, the next time after twice the delay, and the health check reports it meanwhile", async () => {
    const exits = () => said("a worker process exited unexpectedly");
    await workersOfRequests(8);
    const counts = [await countedRequests()];
    const before = await childrenOf(program.child.pid!);
    process.kill(before[0]!, "SIGKILL");
    await until(() => exits().length === 1);
    expect(exits()).toMatchObject([{ reason: "signal SIGKILL", replacedInMs: 250 }]);
    expect(await condition()).toEqual({ status: "degraded", reason: "1 of 2 workers are serving.", workers: 1 });
    await until(async () => {
      counts.push(await countedRequests());
      return (await condition()).status === "ok";
    });
    expectRising(counts);
    expect((await workersOfRequests(8)).size).toBe(2);

    const replacement = (await childrenOf(program.child.pid!)).find((pid) => !before.includes(pid));
    process.kill(replacement!, "SIGKILL");
    await until(() => exits().length === 2);
    expect(exits()[1]).toMatchObject({ replacedInMs: 500 });
    await until(async () => (await condition()).status === "ok");
  });

  test("are replaced one by one on SIGUSR2, no request fails, and none that was counted is forgotten", async () => {
    const before = await childrenOf(program.child.pid!);
    const client = makeClient(program.url);
    const channel = client.channel("room");
    let heard = 0;
    channel.on("broadcast", { event: "word" }, () => void heard++);
    await subscribed(channel);
    const traffic = openTraffic(at("/api/v1/articles?limit=1"), [10, 50, 100, 250, 400, 700]);
    await until(() => traffic.answered() > 100);

    const counts = [await countedRequests()];
    program.child.kill("SIGUSR2");
    await expect
      .poll(
        async () => {
          counts.push(await countedRequests());
          return program.printed();
        },
        { interval: 200 },
      )
      .toContain("reloaded");
    expectRising(counts);
    const answered = traffic.answered();
    await until(() => traffic.answered() > answered + 100);
    expect(await traffic.end()).toEqual([]);

    const after = await childrenOf(program.child.pid!);
    expect(after).toHaveLength(2);
    expect(after.filter((pid) => before.includes(pid))).toEqual([]);
    // Its socket was closed, so the unmodified client has connected and joined again.
    await until(async () => {
      await makeClient(program.url).channel("room").httpSend("word", {});
      return heard > 0;
    });
    await client.removeAllChannels();
  });

  test("a worker that exits during a replacement is replaced once", async () => {
    const [, second] = await childrenOf(program.child.pid!);
    const renewals = () => program.printed().split("reloaded").length;
    const before = renewals();
    program.child.kill("SIGUSR2");
    process.kill(second!, "SIGKILL");
    await until(() => renewals() > before);
    await until(async () => (await condition()).status === "ok");
    expect(await childrenOf(program.child.pid!)).toHaveLength(2);
  });

  test("ignore SIGUSR2, which the primary handles", async () => {
    const before = await childrenOf(program.child.pid!);
    for (const pid of before) process.kill(pid, "SIGUSR2");
    expect((await workersOfRequests(8)).size).toBe(2);
    expect(await childrenOf(program.child.pid!)).toEqual(before);
  });

  test("open no inspector on SIGUSR1, by which the schema is reloaded", async () => {
    const listener = new pg.Client({ connectionString: database.ownerUrl });
    await listener.connect();
    const notified = once(listener, "notification");
    await listener.query("listen pgrst");
    for (const pid of [...(await childrenOf(program.child.pid!)), program.child.pid!]) process.kill(pid, "SIGUSR1");
    expect(await notified).toMatchObject([{ channel: "pgrst", payload: "reload schema" }]);
    await listener.end();
    expect((await workersOfRequests(8)).size).toBe(2);
    const [refused] = await once(connect({ port: 9229, host: "127.0.0.1" }), "error");
    expect(refused).toMatchObject({ code: "ECONNREFUSED" });
  });

  test("serve the connections that were being passed to one that is killed", async () => {
    const [victim] = await childrenOf(program.child.pid!);
    process.kill(victim!, "SIGSTOP");
    let answered = 0;
    const answers = Array.from({ length: 8 }, async () => {
      const { status } = await ask(at("/health/live"));
      answered++;
      return status;
    });
    await until(() => answered === answers.length - 1);
    process.kill(victim!, "SIGKILL");
    expect(await Promise.all(answers)).toEqual(answers.map(() => 200));
  });

  test("leave no connection unanswered when all of them are killed, and the last is replaced at once each time", async () => {
    await until(async () => (await condition()).status === "ok");
    const exits = () => said("a worker process exited unexpectedly");
    const kill = async (victims: readonly number[]) => {
      const before = exits().length;
      for (const victim of victims) process.kill(victim, "SIGKILL");
      await until(() => exits().length === before + victims.length);
      // One that has not served yet is not replaced in the same moment.
      expect(exits().at(-1)!.replacedInMs).toBeLessThanOrEqual(50);
    };
    const victims = await childrenOf(program.child.pid!);
    expect(victims.length).toBeGreaterThan(0);
    for (const victim of victims) process.kill(victim, "SIGSTOP");
    const answers = Promise.allSettled(victims.map(() => ask(at("/health/live"))));
    // Usually both have been passed on by then, and are reset. On a busy machine one may wait for the next worker, which answers it.
    await sleep(100);
    await kill(victims);
    for (const answer of await answers) expect(answer.status === "rejected" || answer.value.status === 200).toBe(true);

    await until(async () => (await fetch(at("/health/live")).catch(() => null))?.status === 200);
    await kill(await childrenOf(program.child.pid!));
    await until(async () => (await fetch(at("/health/live")).catch(() => null))?.status === 200);
  });

  test("the service is ready when the first worker serves, and all processes exit when the primary is killed", async () => {
    const starting = await startReady({
      DATABASE_URL: database.url,
      OWNER_DATABASE_URL: database.ownerUrl,
      JWT_SECRET: SECRET,
      WEB_CONCURRENCY: "2",
    });
    try {
      const states: unknown[] = [];
      await until(async () => {
        const { text } = await ask(`${starting.url}/health`);
        states.push(JSON.parse(text));
        return (states.at(-1) as { workers: number }).workers === 2;
      });
      expect(states[0]).toEqual({ status: "ok", workers: 1 });
      expect(states.filter((state) => (state as { status: string }).status !== "ok")).toEqual([]);
      const workers = await childrenOf(starting.child.pid!);
      expect(workers).toHaveLength(2);
      await starting.kill();
      for (const pid of workers) await expect.poll(async () => (await startTimeOf(pid)) === null).toBe(true);
    } finally {
      await starting.kill();
    }
  });

  test("a port in use is reported once", async () => {
    const { port } = new URL(program.url);
    const refused = await startProgram({
      DATABASE_URL: database.url,
      OWNER_DATABASE_URL: database.ownerUrl,
      JWT_SECRET: SECRET,
      WEB_CONCURRENCY: "2",
      PORT: port,
    });
    expect(refused.child.exitCode).toBe(1);
    expect(refused.logged()).toBe(
      `Port ${port} of 127.0.0.1 is in use. Stop what listens there, or set PORT to another port (0 takes a free one).\n`,
    );
  });

  test("npm run dev is one process", async () => {
    const folder = await mkdtemp(join(tmpdir(), "content-service-dev-"));
    const development = await startReady(
      {
        DATABASE_URL: database.url,
        OWNER_DATABASE_URL: database.ownerUrl,
        JWT_SECRET: SECRET,
        WEB_CONCURRENCY: "2",
        MIGRATIONS_DIR: folder,
      },
      { args: ["--dev"] },
    );
    try {
      expect(await readFile(`/proc/${development.child.pid}/task/${development.child.pid}/children`, "utf8")).toBe("");
      const { text } = await ask(`${development.url}/health`);
      expect(JSON.parse(text)).toEqual({ status: "ok" });
    } finally {
      await development.kill();
      await rm(folder, { recursive: true });
    }
  });

  test("a worker that hangs is killed at shutdown", async () => {
    const hanging = await startGateway(database, { WEB_CONCURRENCY: "2", DRAIN_TIMEOUT_SECONDS: "0" });
    const [pid] = await childrenOf(hanging.child.pid!);
    process.kill(pid!, "SIGSTOP");
    try {
      const ended = once(hanging.child, "exit");
      hanging.child.kill("SIGTERM");
      expect(await ended).toEqual([0, null]);
      expect(await startTimeOf(pid!)).toBeNull();
    } finally {
      if ((await startTimeOf(pid!)) !== null) process.kill(pid!, "SIGKILL");
      await hanging.kill();
    }
  });

  // Workers that start after the first of them load GraphQL before they serve: last, since many start here.
  test("share GraphQL events", async () => {
    const result: string[] = [];
    const listeners = Array.from({ length: 4 }, () =>
      createClient({ url: at("/graphql").replace("http", "ws"), webSocketImpl: WebSocket, lazy: false }),
    );
    for (const [n, listener] of listeners.entries()) {
      const query = "subscription { onArticleCreated { title } }";
      listener.subscribe(
        { query },
        {
          next: ({ data }) => void result.push(`${n} ${(data!.onArticleCreated as { title: string }).title}`),
          error() {},
          complete() {},
        },
      );
    }
    let written = 0;
    await expect
      .poll(async () => {
        await owner.query("insert into public.articles (title, content, author_id) values ($1, 'By hand.', 1)", [
          `Article ${++written}`,
        ]);
        return Array.from({ length: 4 }, (_, n) => n).every((n) => result.some((line) => line.startsWith(`${n} `)));
      })
      .toBe(true);
    for (const listener of listeners) await listener.dispose();
  });

  test("SIGTERM stops all of them cleanly", async () => {
    const pids = await childrenOf(program.child.pid!);
    expect(await stopped(program, "SIGTERM")).toBe(0);
    for (const pid of pids) expect(() => process.kill(pid, 0)).toThrow("ESRCH");
  });
});
