import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import { beforeAll, expect, test } from "vitest";
import { startCluster } from "../../../cluster/embedded/cluster.ts";
import { listArchives } from "../../../cluster/wal-archive/archive-folder.ts";
import { withRecovered } from "../../../cluster/wal-archive/check-wal-archive.ts";
import { planRecovery } from "../../../cluster/wal-archive/choose-archive.ts";
import { WalArchiver } from "../../../cluster/wal-archive/wal-archiver.ts";
import { withClient } from "../../../postgres/client/with-client.ts";
import { useFixture, useFolder } from "../../fixture.ts";
import { propertyRuns } from "../../property-runs.ts";
import { until } from "../../until.ts";

/** The number of moments with PROPERTY_RUNS=1. */
const ALL_MOMENTS = 20;
const NUMBERS = Array.from({ length: propertyRuns(ALL_MOMENTS) }, (_, index) => index + 1);
const WRITERS = 4;
/** Each begins with another base backup. */
const PERIODS = 3;
const SCHEMA = `
  create table public.accounts (id int primary key, balance int not null);
  insert into public.accounts select n, 1000 from generate_series(1, 50) n;
  create table public.notes (id bigint primary key, body text);
  create table public.transfers (id bigint generated always as identity primary key, source int, target int, amount int);
`;
/** All rows, and the tables that writers have created. */
const STATE = `
  select array(select balance from public.accounts order by id) as balances,
    array(select id || ': ' || body from public.notes order by id) as notes,
    array(select (t.*)::text from public.transfers t order by id) as transfers,
    array(select relname::text from pg_class where relname like 'made%' and relkind = 'r' order by relname) as tables`;

type Moment = { readonly at: Date; readonly state: unknown };

const moments: Moment[] = [];

const root = useFolder("recovery-moments-", 0o755);
const cluster = useFixture(() => startCluster({ dataDir: join(root, "data"), port: null, tell: () => {} }));
beforeAll(async () => {
  await query(SCHEMA);
  for (let period = 0; period < PERIODS; period++) {
    await archiving(async (archiver) => {
      const ofPeriod = NUMBERS.filter((number) => number % PERIODS === period);
      for (const _ of ofPeriod) moments.push(await writeUntilMoment());
      await until(() => (archiver.state.range?.to.getTime() ?? 0) > (moments.at(-1)?.at.getTime() ?? 0));
    });
  }
});

const query = async (text: string) => {
  const result = await withClient(cluster.url("postgres", "postgres"), (client) => client.query(text));
  return result.rows;
};

/** Starts an archiver with a new base backup. */
async function archiving(work: (archiver: WalArchiver) => Promise<void>): Promise<void> {
  const log = { info: () => {}, warn: () => {}, error: () => {} };
  const archiver = new WalArchiver({
    dataDir: join(root, "data"),
    folder: join(root, "wal"),
    url: cluster.url("postgres", "postgres"),
    baseHours: 0,
    keepDays: 7,
    reserveBytes: 0,
    check: null,
    log,
  });
  try {
    const begun = new Date();
    await until(() => (archiver.state.lastBase ?? new Date(0)) > begun);
    await work(archiver);
  } finally {
    await archiver.closeWith(async () => {});
  }
}

/** Writes for a random time. At the moment no transaction ends, and one is open. */
async function writeUntilMoment(): Promise<Moment> {
  const endsAt = performance.now() + 200 + Math.random() * 1_000;
  const open = new pg.Client({ connectionString: cluster.url("postgres", "postgres") });
  await open.connect();
  try {
    await open.query("begin; insert into public.transfers (amount) values (0); create table public.made_late ()");
    await Promise.all(Array.from({ length: WRITERS }, () => writeUntil(endsAt)));
    const [{ at }] = (await query("select clock_timestamp() as at")) as [{ at: Date }];
    const [state] = await query(STATE);
    // Dates have milliseconds, and Postgres microseconds: the moment is after the last commit, and before the next.
    const moment = { at: new Date(at.getTime() + 1), state };
    await until(async () => ((await query("select clock_timestamp() as now"))[0] as { now: Date }).now > moment.at);
    await open.query("commit; drop table public.made_late");
    return moment;
  } finally {
    await open.end();
  }
}

async function writeUntil(endsAt: number): Promise<void> {
  await withClient(cluster.url("postgres", "postgres"), async (client) => {
    while (performance.now() < endsAt) {
      await write(client);
      await sleep(Math.random() * 20);
    }
  });
}

/** One of five is rolled back. */
async function write(client: pg.ClientBase): Promise<void> {
  const [source, target] = [1 + Math.floor(Math.random() * 50), 1 + Math.floor(Math.random() * 50)];
  const amount = Math.floor(Math.random() * 100);
  await client.query("begin");
  // The rows are locked in the order of their keys, so that no two writers wait for each other.
  await client.query("select from public.accounts where id = any($1) order by id for update", [[source, target]]);
  await client.query("update public.accounts set balance = balance - $2 where id = $1", [source, amount]);
  await client.query("update public.accounts set balance = balance + $2 where id = $1", [target, amount]);
  const { rows } = await client.query<{ id: string }>(
    "insert into public.transfers (source, target, amount) values ($1, $2, $3) returning id",
    [source, target, amount],
  );
  const { id } = rows[0]!;
  await client.query("insert into public.notes values ($1, repeat(md5($2), 100))", [id, id]);
  await client.query(
    "delete from public.notes where id = (select id from public.notes where id % 3 = 0 order by id limit 1 for update skip locked)",
  );
  if (Number(id) % 10 === 0) await client.query(`create table public.made_${id} ()`);
  await client.query(Math.random() < 0.2 ? "rollback" : "commit");
}

test.each(NUMBERS)("random moment %i of the recorded history is restored as it was", async (number) => {
  const { at, state } = moments[number - 1]!;
  const plan = planRecovery(await listArchives(join(root, "wal")), { target: { at }, current: null, now: new Date() });
  const [restored] = await withRecovered(
    plan,
    () => {},
    (urlOf) => withClient(urlOf("postgres", "postgres"), async (client) => (await client.query(STATE)).rows),
  );
  expect(restored).toEqual(state);
});

test("the moments have different rows and several base backups", async () => {
  expect(new Set(moments.map(({ state }) => JSON.stringify(state))).size).toBe(NUMBERS.length);
  const [archive] = await listArchives(join(root, "wal"));
  expect(archive!.bases).toHaveLength(PERIODS);
});
