import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Cluster } from "../../cluster/embedded/cluster.ts";
import { resuming } from "../../realtime/resuming-socket.ts";
import { useFixture, useFolder } from "../fixture.ts";
import { postmasterOf } from "../postmaster.ts";
import { type Program, startGateway, stopped } from "../program.ts";
import { Detour } from "../realtime/detour.ts";
import { type Message, RawClient } from "../realtime/raw-client.ts";
import { type Client, makeClient } from "../realtime/service.ts";
import { startServer } from "../server-binaries.ts";
import { until } from "../until.ts";

/** More take as long as they are more, and show the same. */
const CHANGES = Number(process.env.REALTIME_CHANGES ?? 5_000);
const BATCH = 50;

let cluster: Cluster;
let gateway: Program;
const clients: Client[] = [];

const dataDir = useFolder("realtime-faults-", 0o755);
beforeAll(async () => {
  cluster = await startPostgres();
  await query(`
    create role anon;
    create role authenticator login noinherit;
    grant anon to authenticator;
    create table news (id int primary key);
    alter table news replica identity full;
    grant select on news to anon;
    create publication supabase_realtime for table news`);
  gateway = await start();
});
const detour = useFixture(() => Detour.to(gateway.url));
afterAll(async () => {
  for (const client of clients) await client.realtime.disconnect();
  await stopped(gateway, "SIGTERM");
  await cluster.stop();
});

const startPostgres = () => startServer({ dataDir, port: null });
const start = () =>
  startGateway({ url: cluster.url("authenticator", "postgres"), ownerUrl: cluster.url("postgres", "postgres") });

async function query(text: string): Promise<pg.QueryResult> {
  const client = new pg.Client({ connectionString: cluster.url("postgres", "postgres") });
  client.on("error", () => {});
  try {
    await client.connect();
    return await client.query(text);
  } finally {
    await client.end().catch(() => {});
  }
}

async function readHealth(): Promise<{ readonly status: string; readonly reason?: string }> {
  return (await fetch(`${gateway.url}/health`)).json() as never;
}

async function killPostgres(): Promise<void> {
  process.kill(await postmasterOf(dataDir), "SIGKILL");
  await cluster.ended;
  cluster = await startPostgres();
}

async function killGateway(): Promise<void> {
  await gateway.kill();
  gateway = await start();
  detour.leadTo(gateway.url);
}

const cutSockets = async () => detour.cut();
const killBoth = async () => {
  await gateway.kill();
  await killPostgres();
  await killGateway();
};
/** The share of the changes after which each fault happens. */
const FAULTS = [
  [0.1, cutSockets],
  [0.2, killGateway],
  [0.35, killPostgres],
  [0.5, cutSockets],
  [0.6, killBoth],
  [0.8, cutSockets],
] as const;

/** Returns the messages to an application, in order: the ids of new rows, and the statuses of its channel. */
async function listen(transport: typeof WebSocket): Promise<(number | string)[]> {
  const told: (number | string)[] = [];
  const client = makeClient(detour.url, null, transport);
  clients.push(client);
  client
    .channel("news")
    .on("postgres_changes", { event: "INSERT", schema: "public", table: "news" }, ({ new: row }) => told.push(row.id))
    .subscribe((status) => told.push(status));
  await until(() => told.at(-1) === "SUBSCRIBED");
  return told;
}

/** Makes the changes in batches, one transaction each; the table tells whether one was committed. */
async function makeChanges(): Promise<void> {
  const faults = [...FAULTS];
  let going: Promise<void> = Promise.resolve();
  for (let next = 1; next <= CHANGES; ) {
    if (faults[0] && next >= faults[0][0] * CHANGES) {
      const [, happen] = faults.shift()!;
      await going;
      going = happen();
    }
    await query(`insert into news select generate_series(${next}, ${next + BATCH - 1})`).catch(() => sleep(20));
    const known = await query("select coalesce(max(id), 0) + 1 as next from news").catch(() => null);
    if (known) next = known.rows[0].next;
  }
  await going;
}

/** Returns the ids that did not come right behind the one before, with the statuses in between. */
function gapsIn(
  told: readonly (number | string)[],
): readonly { readonly id: number; readonly said: readonly string[] }[] {
  const gaps: { id: number; said: readonly string[] }[] = [];
  let last = 0;
  let said: string[] = [];
  for (const each of told) {
    if (typeof each === "string") said.push(each);
    else {
      if (each !== last + 1) gaps.push({ id: each, said });
      [last, said] = [each, []];
    }
  }
  return gaps;
}

/** A commit with `synchronous_commit = on` waits from now on, or no longer. */
async function setStandby(name: string): Promise<void> {
  await query(`alter system set synchronous_standby_names = '${name}'`);
  await query("select pg_reload_conf()");
  await until(async () => (await query("show synchronous_standby_names")).rows[0].synchronous_standby_names === name);
  // The checkpointer puts the setting into effect, before it does anything else: until then commits do not wait.
  await query("checkpoint");
}

test("a commit that waits for a standby is sent, and checked, when other sessions see it", async () => {
  await query(`
    create table members (id int primary key);
    create table letters (id int primary key, member int);
    alter table letters replica identity full;
    alter table letters enable row level security;
    create policy select_known on letters for select using (exists (select from members where id = member));
    grant select on members, letters to anon;
    alter publication supabase_realtime add table letters`);
  await query("alter system set synchronous_commit = 'local'");
  const commitsSlowly = async (statements: string): Promise<{ committed: Promise<unknown> }> => {
    await setStandby("nobody");
    const committed = query(`begin; set local synchronous_commit = on; ${statements}; commit`);
    await until(async () => (await query("select from pg_stat_activity where wait_event = 'SyncRep'")).rowCount === 1);
    return { committed };
  };
  /** True after the service has asked which transactions other sessions see. */
  const isAsked = (since: Date) => async () => {
    const { rows } = await query(`select query_start from pg_stat_activity
      where starts_with(query, 'select pg_catalog.pg_current_snapshot()') order by 1 desc limit 1`);
    return rows.length > 0 && rows[0].query_start > since;
  };
  const client = await new RawClient(gateway.url).opened();
  await client.join("realtime:x", { postgres_changes: [{ event: "INSERT", schema: "public" }] });

  const member = await commitsSlowly("insert into members values (1); insert into letters values (1, 1)");
  await until(isAsked(new Date(0)));
  // The commit waits longer than usual, which the health reports.
  await until(async () => (await readHealth()).reason?.includes("delivery of changes") ?? false);
  await setStandby("");
  await member.committed;
  await until(async () => (await readHealth()).status === "ok");
  await query("insert into letters values (2, 1)");

  const SCHEMA_CHANGED = "select pg_logical_emit_message(true, 'schema', '')";
  await client.until(({ payload }) => payload.data?.record.id === 2);
  const revoked = await commitsSlowly(`revoke select on letters from anon; ${SCHEMA_CHANGED}`);
  const { rows } = await query("select now()");
  await query("insert into letters values (3, 1)");
  await until(isAsked(rows[0].now));
  await setStandby("");
  await revoked.committed;
  await query("insert into news values (1)");
  await client.until(({ payload }) => payload.data?.table === "news");
  await query(`grant select on letters to anon; ${SCHEMA_CHANGED}`);
  await query("insert into letters values (4, 1)");
  await client.until(({ payload }) => payload.data?.record.id === 4);

  const told = client.items.filter(({ payload }) => payload.data?.table === "letters");
  expect(told.map(({ payload }) => payload.data.record.id)).toEqual([1, 2, 4]);
  await client.close();
  await query("delete from news");
  await query("alter system reset synchronous_commit");
});

test("without event triggers, a client is notified when its table was not published, and receives changes when it is again", async () => {
  const news = { postgres_changes: [{ event: "INSERT", schema: "public", table: "news" }] };
  let joins = 0;
  let last = 1_000_000;
  const client = await new RawClient(gateway.url).opened();
  const join = async () => {
    const { payload } = await client.join(`realtime:${++joins}`, news);
    return payload.status;
  };
  const isError = ({ topic, payload }: Message) => topic === `realtime:${joins}` && payload.status === "error";
  const lost = async () => (await client.until(isError)).payload.message;
  const receives = async () => {
    await query(`insert into news values (${++last})`);
    await client.until(({ topic, payload }) => topic === `realtime:${joins}` && payload.data?.record.id === last);
  };
  for (const [change, reason, undo] of [
    [
      "alter publication supabase_realtime drop table news",
      "changes of news are no longer published",
      "alter publication supabase_realtime add table news",
    ],
    [
      "begin; alter publication supabase_realtime drop table news; insert into news values (0); alter publication supabase_realtime add table news; commit",
      "changes of news were not published for a while",
      "delete from news where id = 0",
    ],
    [
      "drop publication supabase_realtime",
      "changes of news are no longer published",
      "create publication supabase_realtime for table news, letters",
    ],
  ] as const) {
    await until(async () => (await join()) === "ok");
    await receives();
    await query(change);
    expect(await lost()).toContain(reason);
    await query(undo);
  }
  await until(async () => (await join()) === "ok");
  await receives();
  await client.close();
  await query("delete from news");
});

test(`while Postgres, the gateway and the sockets are killed during ${CHANGES} changes, a client that resumes misses none, and one that does not is notified of each gap`, async () => {
  const resumed = [];
  for (let count = 0; count < 3; count++) resumed.push(await listen(resuming(WebSocket)));
  const plain: Awaited<ReturnType<typeof listen>>[] = [];
  for (let count = 0; count < 2; count++) plain.push(await listen(WebSocket));

  await makeChanges();
  const { rows } = await query("select id from news order by id");
  // A channel that ends after a row was inserted joins again without it.
  const everything = rows.map(({ id }) => id);
  await until(async () => {
    const id = everything.length + 1;
    await query(`insert into news values (${id})`);
    everything.push(id);
    return plain.every((told) => told.some((each) => typeof each === "number" && each > rows.length));
  });
  for (const told of [...resumed, ...plain]) await until(() => told.includes(everything.length));

  for (const told of resumed) expect(told.filter((each) => typeof each === "number")).toEqual(everything);
  const gaps = plain.flatMap(gapsIn);
  // The control: without resuming there is something to miss.
  expect(gaps.length).toBeGreaterThan(0);
  for (const { said } of gaps) expect(said).toEqual(expect.arrayContaining(["CHANNEL_ERROR", "SUBSCRIBED"]));
  for (const told of plain) {
    const ids = told.filter((each) => typeof each === "number");
    expect(ids).toEqual([...new Set(ids)].sort((one, other) => one - other));
  }
  const missed = plain.map((told) => everything.length - told.filter((each) => typeof each === "number").length);
  console.log(
    `of ${everything.length} changes who resumed missed 0, the others ${missed.join(" and ")} in ${gaps.length} gaps, each announced`,
  );
});
