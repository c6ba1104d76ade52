import { readFileSync } from "node:fs";
import { join } from "node:path";
import pg from "pg";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { cloneDatabase, type TestDatabase } from "../database.ts";
import { anonKey, makeClient, subscribed } from "../realtime/service.ts";
import { REPOSITORY, serviceFiles } from "../repository.ts";
import { serve } from "../serve.ts";
import { until } from "../until.ts";

/** A gateway with a subscriber and a webhook runs all of it, but the stream of clients that resume, which ends when they have caught up. */
const WORK = [
  "catalogue watch",
  "change stream",
  "collection of files",
  "connections to the database",
  "delivery of changes",
  "e-mails",
  "events of subscriptions",
  "notifications",
  "queue maintenance",
  "recorded requests",
  "schedules and backups",
  "settings in the database",
  "shape logs",
  "shared request counts",
  "tasks of anonymous callers",
  "tasks of callers",
  "tasks of the system",
  "watch of the publication",
  "webhook deliveries",
  "webhook maintenance",
  "webhooks",
];

/** Timers that do no background work that could end: they cannot fail, or another mechanism reports them. */
const OTHER_TIMERS: Readonly<Record<string, string>> = {
  "runtime/concurrency/supervisor.ts": "the supervisor",
  "postgres/database/connection-pools.ts": "closes idle connections, in memory",
  "postgres/database/replicas.ts": "reported as replicas in /health",
  "runtime/limits/load-shedding.ts": "reads the clock",
  "live/stream/replication-session.ts": "ends with its session, which the change stream opens again",
  "cluster/wal-archive/wal-receiver.ts": "reported as the WAL archive in /health",
  "jobs/queue/job-runner.ts": "watches a lane",
  "http/socket-host.ts": "looks at sockets, in memory",
  "realtime/changes/audience.ts": "the watch of the publication, which reports itself",
  "realtime/presence.ts": "looks at presences, in memory",
  "http/drain.ts": "ends with the service",
  "http/request-body.ts": "resumes sockets, in memory",
  "rest-gateway/functions/function-thread.ts": "measures a thread while it works",
  "rest-gateway/functions/functions.ts": "ends idle threads",
  "rest-gateway/mcp/protocol-server.ts": "reports the progress of one call",
  "service/cli/command/progress.ts": "ends with the work of a command",
};

test("whatever is done at intervals is background work of the supervisor, or cannot end", () => {
  const sources = serviceFiles();
  const withTimers = sources.filter((file) => /\bsetInterval\(/.test(readFileSync(join(REPOSITORY, file), "utf8")));
  expect(withTimers.filter((file) => !(file in OTHER_TIMERS))).toEqual([]);
  expect(Object.keys(OTHER_TIMERS).filter((file) => !sources.includes(file))).toEqual([]);
});

let database: TestDatabase;
let service: Awaited<ReturnType<typeof serve>>;
let superuser: pg.Client;
let owner: pg.Client;
let opened: AsyncDisposableStack;
beforeAll(async () => {
  opened = new AsyncDisposableStack();
  database = await cloneDatabase("content");
  opened.defer(() => database.drop());
  superuser = opened.adopt(await connect("postgres"), (client) => client.end());
  owner = opened.adopt(await connect(database.name), (client) => client.end());
  await owner.query(`
    create table public.marks (id int primary key);
    grant select, insert on public.marks to anon, service_role;
    create table public.done (id int primary key);
    create function public.mark(id int) returns void language sql security definer as 'insert into public.done values (id)';
    grant execute on function public.mark to anon;
    insert into api.webhooks (name, table_name, url, role) values ('marks', 'public.marks', 'http://127.0.0.1:9/', 'service_role')`);
  service = await serve(database, { RATE_LIMIT: "1000000", WEBHOOK_NETWORK: "loopback", ADMIN_PORT: "0" });
  opened.defer(() => service.stop());
  // GraphQL is loaded by its first request.
  expect(await post("/graphql", { query: "{ __typename }" })).toBe(true);
  const client = makeClient(service.url);
  opened.defer(() => void client.realtime.disconnect());
  await subscribed(client.channel("marks").on("postgres_changes", MARKS, ({ new: row }) => received.add(row.id)));
});
afterAll(() => opened.disposeAsync());

const MARKS = { event: "INSERT", schema: "public", table: "marks" } as const;
const received = new Set<number>();
let last = 0;

async function connect(name: string): Promise<pg.Client> {
  const connectionString = database.ownerUrl.replace(database.name, name);
  const options = "-c default_transaction_read_only=off -c statement_timeout=0";
  const client = new pg.Client({ connectionString, options, application_name: "test" });
  await client.connect();
  return client;
}

const endSessions = () =>
  superuser.query(
    `select pg_terminate_backend(pid) from pg_stat_activity where datname = $1 and application_name <> 'test'`,
    [database.name],
  );
const withSetting = async (setting: string, isEndedAfterwards: boolean) => {
  await superuser.query(`alter database ${database.name} set ${setting}`);
  await endSessions();
  await until(async () => (await health()).status !== "ok");
  await superuser.query(`alter database ${database.name} reset ${setting.split(" ")[0]}`);
  if (isEndedAfterwards) await endSessions();
};

/** Nothing of it is to be done while nobody connects and nothing is changed, or only once a minute, or without Postgres, or its faults do not stop it. */
const IDLE = [
  "connections to the database",
  "delivery of changes",
  "e-mails",
  "events of subscriptions",
  "recorded requests",
  "settings in the database",
  "shape logs",
  "webhook deliveries",
  "webhook maintenance",
];

/** Refuses connections until all work that is done at any time has been reported as stopped. */
const refuseConnections = async () => {
  await superuser.query(`alter database ${database.name} allow_connections false`);
  await endSessions();
  await until(async () => {
    // Counts of requests are shared while there are new ones.
    await (await fetch(`${service.url}/rest/v1/`, { headers: { apikey: anonKey } })).arrayBuffer();
    const works = await readWork();
    return WORK.every((name) => IDLE.includes(name) || works[name] === 1);
  });
  await superuser.query(`alter database ${database.name} allow_connections true`);
};

const FAULTS: Readonly<Record<string, () => Promise<unknown>>> = {
  "connections are refused, which stops it": refuseConnections,
  "sessions are ended": endSessions,
  "statements take too long": () => withSetting("statement_timeout = '1ms'", true),
  "transactions are read-only, in sessions that stay": () => withSetting("default_transaction_read_only = on", false),
};

/** Returns, for each background work, 1 if it is stopped and 0 otherwise. */
async function readWork(): Promise<Readonly<Record<string, number>>> {
  const metrics = (await service.operations.measure()).flat() as {
    name: string;
    values: { labels: { work: string }; value: number }[];
  }[];
  const stopped = metrics.find(({ name }) => name === "content_service_background_work_stopped")!;
  return Object.fromEntries(stopped.values.map(({ labels, value }) => [labels.work, value]));
}

async function health(): Promise<{ readonly status: string; readonly reason?: string }> {
  return (await fetch(`${service.url}/health`)).json() as never;
}

async function post(path: string, body: object, headers = {}): Promise<boolean> {
  const init = {
    method: "POST",
    headers: { "Content-Type": "application/json", ...headers },
    body: JSON.stringify(body),
  };
  return (await fetch(service.url + path, init)).ok;
}

/** Resolves when the subscriber has received a row that is written from now on, and the queue has run a task. */
async function allWorks(): Promise<void> {
  const written = new Set<number>();
  await until(async () => {
    const id = ++last;
    const isWritten = await post("/api/v1/marks", { id });
    const isQueued = await post("/rest/v1/rpc/mark", { id }, { apikey: anonKey, Prefer: "respond-async" });
    if (!isWritten || !isQueued) return false;
    written.add(id);
    const { rows } = await owner.query("select 1 from public.done where id = any($1)", [[...written]]);
    return rows.length > 0 && [...written].some((each) => received.has(each));
  });
}

describe("background work", () => {
  test("is all known by name", async () => {
    await allWorks();
    expect(Object.keys(await readWork())).toEqual(WORK);
  });

  test.each(Object.keys(FAULTS))("goes on after %s, and /health says so", async (fault) => {
    await FAULTS[fault]!();
    await allWorks();
    await expect.poll(async () => (await health()).status === "ok").toBe(true);
  });
});
