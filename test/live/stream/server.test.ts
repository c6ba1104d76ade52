import { execFile } from "node:child_process";
import { chmod, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import pg from "pg";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Cluster } from "../../../cluster/embedded/cluster.ts";
import { Supervisor } from "../../../runtime/concurrency/supervisor.ts";
import { useFolder } from "../../fixture.ts";
import { postmasterOf } from "../../postmaster.ts";
import { startServer } from "../../server-binaries.ts";
import { until } from "../../until.ts";
import { changesOf, Followed, QUIET, since } from "./followed.ts";

const ROWS = 50_000;

let cluster: Cluster;
let url: string;

const dataDir = useFolder("changes-server-", 0o755);
beforeAll(async () => {
  await start();
  await query(`
    create table items (id int primary key, name text);
    alter table items replica identity full;
    create publication followed for table items`);
});
afterAll(() => cluster.stop());

async function start(settings: Record<string, string> = {}): Promise<void> {
  cluster = await startServer({ dataDir, port: null, settings });
  url = cluster.url("postgres", "postgres");
}

async function query(text: string): Promise<pg.QueryResult> {
  const client = new pg.Client({ connectionString: url });
  client.on("error", () => {});
  await client.connect();
  try {
    return await client.query(text);
  } finally {
    await client.end().catch(() => {});
  }
}

const upTo = (last: number, first: number) => Array.from({ length: last - first + 1 }, (_, index) => first + index);

async function killPostgres(): Promise<void> {
  process.kill(await postmasterOf(dataDir), "SIGKILL");
  await cluster.ended;
  await start();
}

async function restart(settings: Record<string, string>): Promise<void> {
  await query("select pg_drop_replication_slot(slot_name) from pg_replication_slots where not active");
  await cluster.stop();
  await start(settings);
}

test("when Postgres is killed amid 50,000 changes, none is lost or repeated, and the order stays", async () => {
  const changes = changesOf(url);
  const followed = new Followed();
  await changes.follow(followed).from;

  let kills = 0;
  for (let next = 0; next < ROWS; ) {
    const size = next % 10_000 === 0 ? 5_000 : 200;
    // The table tells whether it was committed.
    const writing = query(`insert into items select generate_series(${next}, ${next + size - 1})`).catch(() => {});
    if (kills < 2 && next >= (kills + 1) * 18_000) {
      kills++;
      await killPostgres();
    }
    await writing;
    const { rows } = await query("select coalesce(max(id) + 1, 0) as next from items");
    next = rows[0].next;
  }
  const { rows } = await query("select id::text from items order by items.id");
  await until(() => followed.changes.length >= rows.length);
  expect(kills).toBe(2);
  expect(followed.values()).toEqual(rows.map(({ id }) => id));
  expect(followed.gaps).toEqual([]);
  expect(followed.committed).toEqual(followed.begun);
  await changes.close();
});

test("Postgres shuts down cleanly while there is a subscriber, which continues afterwards", async () => {
  const changes = changesOf(url);
  const followed = new Followed();
  await changes.follow(followed).from;
  await cluster.stop();
  await until(() => changes.state().status === "away");
  await start();
  await query("truncate items");
  await until(() => followed.committed.length === 1);
  expect(followed.gaps).toEqual([]);
  await changes.close();
});

test.each([
  ["hangs", (stuck: Promise<void>) => stuck],
  ["is slow", () => sleep(20)],
])("Postgres shuts down while a subscriber %s, which then continues", async (_, handle) => {
  // Only the shutdown ends the connection.
  const changes = changesOf(url, { patienceMs: 2 ** 30 });
  const followed = new Followed();
  const stuck = Promise.withResolvers<void>();
  await changes.follow(followed).from;
  await query("truncate items");
  await until(() => followed.committed.length === 1);
  followed.beforeEach = () => handle(stuck.promise);
  // The buffers of the connection do not take as much.
  await query("insert into items select n, repeat('x', 10000) from generate_series(1, 4000) as n");
  await until(() => followed.changes.length > 1);
  await cluster.stop();
  await until(() => changes.state().status === "away");
  expect(followed.changes.length).toBeLessThan(4_000);
  followed.beforeEach = () => {};
  stuck.resolve();
  await start();
  await until(() => followed.committed.length === 2);
  expect(followed.values()).toEqual([undefined, ...upTo(4_000, 1).map(String)]);
  expect(followed.gaps).toEqual([]);
  await changes.close();
  await query("truncate items");
});

const makeSupervisor = () => new Supervisor({ log: QUIET });
const pidsOf = async (condition: string): Promise<number[]> =>
  (await query(`select pid from pg_stat_activity where ${condition}`)).rows.map(({ pid }) => pid);

test("a sender that hangs is reported while the connection still stands, and replaced without a gap", async () => {
  const supervisor = makeSupervisor();
  const changes = changesOf(url, { supervisor, patienceMs: 1_000 });
  const followed = new Followed();
  await changes.follow(followed).from;
  const [sender] = await pidsOf("backend_type = 'walsender'");
  process.kill(sender!, "SIGSTOP");
  await query("insert into items values (200001)");
  await until(() => supervisor.stopped().includes("change stream"));
  expect(changes.state().status).toBe("streaming");
  await until(() => followed.values().includes("200001"));
  expect(supervisor.stopped()).toEqual([]);
  expect(followed.gaps).toEqual([]);
  process.kill(sender!, "SIGCONT");
  await changes.close();
  await query("truncate items");
});

test("a sender that hangs for a moment is reported, and continues on the same connection", async () => {
  const supervisor = makeSupervisor();
  const changes = changesOf(url, { supervisor, patienceMs: 4_000 });
  const followed = new Followed();
  await changes.follow(followed).from;
  const [sender] = await pidsOf("backend_type = 'walsender'");
  process.kill(sender!, "SIGSTOP");
  await until(() => supervisor.stopped().includes("change stream"));
  process.kill(sender!, "SIGCONT");
  await until(() => supervisor.stopped().length === 0);
  expect(await pidsOf("backend_type = 'walsender'")).toEqual([sender]);
  await changes.close();
});

test("a stream that waits for a transaction before it can begin is reported", async () => {
  const writer = new pg.Client({ connectionString: url });
  await writer.connect();
  await writer.query("begin; insert into items values (200002)");
  const supervisor = makeSupervisor();
  const changes = changesOf(url, { supervisor, keep: "never" });
  const { from } = changes.follow(new Followed());
  await until(() => supervisor.stopped().includes("change stream"));
  expect(changes.state().status).toBe("opening");
  await writer.query("rollback");
  await writer.end();
  await from;
  expect(supervisor.stopped()).toEqual([]);
  await changes.close();
});

test("a replica that was promoted without the last changes is followed from where it was promoted, after a gap", async () => {
  const changes = changesOf(url);
  const followed = new Followed();
  await changes.follow(followed).from;
  await cluster.stop();
  const copy = await mkdtemp(join(tmpdir(), "changes-promoted-"));
  await chmod(copy, 0o755);
  const move = (from: string, to: string) => promisify(execFile)("cp", ["-a", join(from, "postgres"), to]);
  await move(dataDir, copy);
  await start();
  await query("insert into items select generate_series(100001, 100200)");
  await until(() => followed.committed.length === 1);
  const { history } = changes.state();
  await cluster.stop();

  // The copy, which never had those rows, goes its own way beyond the place that was read to.
  await writeFile(join(copy, "postgres/recovery.signal"), "");
  const promoted = await startServer({
    dataDir: copy,
    port: null,
    settings: { restore_command: "false" },
  });
  const client = new pg.Client({ connectionString: promoted.url("postgres", "postgres") });
  await client.connect();
  for (const first of [200_001, 300_001]) {
    await client.query(`insert into items select generate_series(${first}, ${first + 10_000})`);
  }
  await client.end();
  await promoted.stop();
  await rm(join(dataDir, "postgres"), { recursive: true });
  await move(copy, dataDir);
  await start();
  await until(() => followed.gaps.length === 1);
  await query("insert into items values (400001)");
  await until(() => followed.values().includes("400001"));
  const ids = followed.values().map(Number);
  expect(ids.slice(0, 200)).toEqual(upTo(100_200, 100_001));
  expect(ids.slice(200)).toEqual([200_001, 300_001].flatMap((first) => upTo(first + 10_000, first)).concat(400_001));
  expect(followed.gaps).toHaveLength(1);
  expect(followed.gaps[0]!.reason).toContain("promoted");
  expect(history!.id).toMatch(/^[\da-f]{8}$/);
  expect(changes.state().history!.id).not.toBe(history!.id);
  await changes.close();
  await rm(copy, { recursive: true });
});

test("an invalidated slot is created again, and resuming from it is refused", async () => {
  await restart({ max_slot_wal_keep_size: "1MB", max_wal_size: "32MB", min_wal_size: "32MB" });
  const first = changesOf(url);
  const followed = new Followed();
  await first.follow(followed).from;
  await query("insert into items values (1)");
  await until(() => followed.committed.length === 1);
  const position = since(first, followed.committed[0]!.commitLsn);
  await first.close();

  for (let round = 0; round < 3; round++) {
    await query("insert into items select number, repeat('x', 500) from generate_series(2, 40000) as number");
    await query("truncate items; select pg_switch_wal(); checkpoint");
  }
  const { rows } = await query("select wal_status from pg_replication_slots");
  expect(rows).toEqual([{ wal_status: "lost" }]);
  const second = changesOf(url);
  await expect(second.follow(new Followed(), position).from).rejects.toMatchObject({ kind: "gone" });
  const resumed = new Followed();
  await second.follow(resumed).from;
  await query("insert into items values (3)");
  await until(() => resumed.committed.length === 1);
  await second.close();
});

test("a slot whose WAL is gone, although Postgres reports it as reserved, is created again, and subscribers are told once", async () => {
  await restart({});
  const first = changesOf(url, { keep: "always" });
  await first.follow(new Followed()).from;
  await first.close();
  const { rows } = await query(
    "select pg_walfile_name(restart_lsn) as file from pg_replication_slots where restart_lsn is not null",
  );
  for (let round = 0; round < 2; round++) await query("truncate items; select pg_switch_wal()");
  await query("checkpoint");
  await cluster.stop();
  await rm(join(dataDir, "postgres", "pg_wal", rows[0].file));
  await start();
  const slots = await query("select wal_status from pg_replication_slots");
  expect(slots.rows).toEqual([{ wal_status: "reserved" }]);

  const second = changesOf(url, { keep: "always" });
  const followed = new Followed();
  await second.follow(followed).from;
  await until(() => followed.gaps.length === 1);
  await query("insert into items values (4)");
  await until(() => followed.committed.length === 1);
  expect(followed.values()).toEqual(["4"]);
  expect(followed.gaps).toHaveLength(1);
  expect(second.state().status).toBe("streaming");
  await second.close();
});

test("without max_slot_wal_keep_size, no slot is left behind, unless that is configured", async () => {
  await restart({ max_slot_wal_keep_size: "-1" });
  const slots = async () => {
    const { rows } = await query("select temporary from pg_replication_slots order by temporary");
    return rows.map(({ temporary }) => temporary);
  };
  const cautious = changesOf(url);
  await cautious.follow(new Followed()).from;
  expect(await slots()).toEqual([true]);
  await cautious.close();
  const request = changesOf(url, { keep: "always" });
  await request.follow(new Followed()).from;
  await until(async () => (await slots()).length === 2);
  expect(await slots()).toEqual([false, true]);
  await request.close();
});

test("a server without a free slot is retried until it has one, and no change is missed meanwhile", async () => {
  await restart({ max_replication_slots: "2" });
  const take = "select pg_create_physical_replication_slot('somebody')";
  await query(`${take}; select pg_create_physical_replication_slot('else')`);
  const changes = changesOf(url);
  const followed = new Followed();
  const { from } = changes.follow(followed);
  await until(() => changes.state().reason?.includes("slots") === true);
  await query("select pg_drop_replication_slot(slot_name) from pg_replication_slots");
  await from;

  await query("select pg_terminate_backend(active_pid) from pg_replication_slots where active");
  await until(() =>
    query(take).then(
      () => true,
      () => false,
    ),
  );
  await query("insert into items values (100001)");
  // The pause allows more attempts than Postgres may refuse to read something.
  await sleep(3_000);
  expect(changes.state().reason).toContain("slots");
  await query("select pg_drop_replication_slot('somebody')");
  await until(() => followed.committed.length === 1);
  expect(followed.gaps).toEqual([]);
  await changes.close();
});

test("a server with too low a wal_level is refused with the setting to change", async () => {
  await restart({ wal_level: "replica" });
  const changes = changesOf(url);
  await expect(changes.follow(new Followed()).from).rejects.toMatchObject({ kind: "unavailable" });
  expect(changes.state()).toMatchObject({ status: "refused", position: null });
  expect(changes.state().reason).toContain("must be logical");
  await changes.close();
});
