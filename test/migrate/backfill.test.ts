import { once } from "node:events";
import pg from "pg";
import { beforeAll, beforeEach, expect, test } from "vitest";
import { listBackfills, pauseBackfill } from "../../migrate/backfill-progress.ts";
import { useDatabase } from "../database.ts";
import { useFixture } from "../fixture.ts";
import { run } from "../program.ts";
import { SECRET } from "../secret.ts";
import { runCommand } from "../service/cli/run-command.ts";
import { until } from "../until.ts";

const database = useDatabase({ template: "empty" });
const owner = useFixture(() => new pg.Pool({ connectionString: database.ownerUrl, max: 4 }));
beforeAll(async () => {
  owner.on("error", () => {});
});

/** Declares a backfill by hand, with keys of two columns, and a trigger of the user beside it. */
async function declareBackfill(rows = 5000): Promise<void> {
  await owner.query(`
    drop schema if exists "Shop" cascade;
    create schema "Shop";
    create table "Shop".items (part text, "No" int, price int, cents int, changes int not null default 0, primary key (part, "No"));
    insert into "Shop".items select 'p' || i % 7, i, i from generate_series(1, ${rows}) as i;
    create function "Shop".fill() returns trigger language plpgsql as $$ begin NEW.cents := NEW.price * 100; return NEW; end $$;
    create function "Shop".count_change() returns trigger language plpgsql as $$ begin NEW.changes := OLD.changes + 1; return NEW; end $$;
    create trigger _100_count before update on "Shop".items for each row execute function "Shop".count_change();
    create trigger _990_fill before insert or update on "Shop".items for each row execute function "Shop".fill();
    alter table "Shop".items add constraint cents_filled check (cents is not distinct from price * 100) not valid;
    comment on constraint cents_filled on "Shop".items is e'@backfill cents\\nCents are a hundred times the price.'`);
}
beforeEach(() => declareBackfill());

const backfill = (...words: string[]) =>
  runCommand("migrate", ["backfill", ...words], database, { BASE_SCHEMA: "none" });

function startBackfill() {
  const settings = { DATABASE_URL: database.url, OWNER_DATABASE_URL: database.ownerUrl, JWT_SECRET: SECRET };
  const args = ["backfill", "--load", "5"];
  const { child, streams } = run("service/cli/migrate.ts", { ...settings, BASE_SCHEMA: "none" }, { args });
  return { child, streams, ended: once(child, "close") };
}

async function countOf(condition: string): Promise<number> {
  const { rows } = await owner.query(`select count(*)::int as count from "Shop".items where ${condition}`);
  return rows[0].count;
}

const isValidated = async () =>
  (await owner.query("select convalidated from pg_constraint where conname = 'cents_filled'")).rows[0].convalidated;

test("fills each row once, whatever the key is, and validates the constraint", async () => {
  expect(await backfill("--status")).toMatchObject({
    code: 3,
    stdout: '"Shop".items.cents: 5,000 of 5,000 rows are left.\n',
  });
  await owner.query(`update "Shop".items set price = price where "No" <= 100`);
  const done = await backfill("--load", "100");
  expect(done).toMatchObject({
    code: 0,
    stdout: expect.stringContaining('"Shop".items.cents: complete; 4,900 rows filled'),
  });
  expect([await countOf("cents = price * 100"), await countOf("changes = 1"), await isValidated()]).toEqual([
    5000,
    5000,
    true,
  ]);
  const none = { code: 0, stdout: "No backfill is declared, or all are complete.\n" };
  expect([await backfill(), await backfill("--status")]).toMatchObject([none, none]);
});

test("Ctrl-C stops it after a batch; run again, it continues", async () => {
  const { child, streams, ended } = startBackfill();
  await until(async () => child.exitCode !== null || (await countOf("cents is not null")) > 200);
  child.kill("SIGINT");
  child.kill("SIGINT");
  expect(await ended).toEqual([1, null]);
  expect(streams.logged).toMatch(
    /Stopped by SIGINT\. [\d,]+ rows of "Shop"\.items\.cents were filled\. Run it again to continue\./,
  );
  const filled = await countOf("cents is not null");
  expect(filled).toBeLessThan(5000);
  expect((await backfill("--load", "100")).stdout).toContain(`${(5000 - filled).toLocaleString("en")} rows filled`);
  expect(await countOf("changes = 1")).toBe(5000);
});

test("waits for no locked row: it fills the others, and those when they are free", async () => {
  const other = await owner.connect();
  try {
    await other.query(`begin; select from "Shop".items where "No" between 10 and 20 for update`);
    const { child, streams, ended } = startBackfill();
    await until(async () => child.exitCode !== null || (await countOf("cents is null")) === 11);
    expect([child.exitCode, await isValidated()]).toEqual([null, false]);
    await other.query("rollback");
    expect(await ended, streams.logged).toEqual([0, null]);
    expect([await countOf("cents is null"), await isValidated()]).toEqual([0, true]);
  } finally {
    other.release(true);
  }
});

test("goes on when the table was locked, and lets others that wait for it go first", async () => {
  const other = await owner.connect();
  const later = await owner.connect();
  try {
    await other.query(`begin; lock table "Shop".items in access exclusive mode`);
    const { child, ended, streams } = startBackfill();
    const locks = "select from pg_locks where relation = '\"Shop\".items'::regclass and not granted";
    await until(async () => child.exitCode !== null || (await owner.query(locks)).rowCount !== 0);
    const waiting = later.query(`alter table "Shop".items add column note text`);
    await other.query("rollback");
    await waiting;
    expect(await ended, streams.logged).toEqual([0, null]);
    expect(await countOf("cents is null")).toBe(0);
  } finally {
    other.release(true);
    later.release(true);
  }
});

test("names the row that cannot be filled", async () => {
  await owner.query(`create or replace function "Shop".fill() returns trigger language plpgsql as $$
    begin NEW.cents := NEW.price * 100 + 0 / (NEW."No" - 1234); return NEW; end $$`);
  const failed = await backfill("--load", "100");
  expect(failed.code).toBe(1);
  expect(failed.stderr).toBe(
    '"Shop".items.cents cannot be filled in the row part = p2, No = 1234: division by zero. Correct it, and run this again.\n',
  );
  const stopped = { state: "stopped", progress: { error: failed.stderr.trim() } };
  expect((await listBackfills(database.ownerUrl))[0]).toMatchObject(stopped);
});

test("says that a trigger suppresses updates, and that a table has no key", async () => {
  await owner.query(
    `create trigger _000_same before update on "Shop".items for each row execute function suppress_redundant_updates_trigger()`,
  );
  expect((await backfill()).stderr).toContain('A trigger of "Shop".items suppresses the updates that fill cents.');
  await owner.query(`alter table "Shop".items drop constraint items_pkey`);
  expect((await backfill()).stderr).toContain('"Shop".items has no primary key');
});

const listed = async () => (await listBackfills(database.ownerUrl))[0];

test("its progress can be read, and it pauses and goes on when it is told to", async () => {
  const total = 15_000;
  await declareBackfill(total);
  await owner.query(`analyze "Shop".items`);
  const id = (await listed())!.id;
  expect(await listed()).toEqual({
    id: expect.any(Number),
    table: '"Shop".items',
    column: "cents",
    estimatedRows: total,
    state: "not started",
    progress: null,
  });
  expect(await pauseBackfill(database.ownerUrl, id, true)).toBe(false);
  const { child, streams, ended } = startBackfill();
  await until(async () => child.exitCode !== null || ((await listed())?.progress?.read ?? 0) > 0);
  expect(await listed()).toMatchObject({ state: "running", progress: { load: 5, waitsFor: null, error: null } });
  expect(await pauseBackfill(database.ownerUrl, id, true)).toBe(true);
  await until(async () => child.exitCode !== null || (await listed())?.progress?.waitsFor === "until it is resumed");
  const paused = (await listed())!;
  expect(paused).toMatchObject({
    state: "paused",
    progress: { filled: await countOf("cents is not null"), rowsPerSecond: expect.any(Number) },
  });
  expect(streams.logged).toContain("paused: until it is resumed");
  child.kill("SIGINT");
  await ended;
  expect(await listed()).toMatchObject({
    state: "stopped",
    progress: { waitsFor: null, error: expect.stringMatching(/^Stopped by SIGINT\..* Run it again to continue\.$/) },
  });
  const again = startBackfill();
  await until(async () => again.child.exitCode !== null || (await listed())?.state === "running");
  expect((await listed())?.progress).toMatchObject({ error: null });
  await pauseBackfill(database.ownerUrl, id, true);
  expect((await listed())?.state).toBe("paused");
  await pauseBackfill(database.ownerUrl, id, false);
  expect((await listed())?.state).toBe("running");
  expect(await again.ended).toEqual([0, null]);
  expect([await listed(), await countOf("changes = 1")]).toEqual([undefined, total]);
  expect((await owner.query("select from graphile_migrate.backfills")).rowCount).toBe(0);
});

test("refuses loads that are none", async () => {
  for (const load of ["0", "101", "much"]) expect((await backfill("--load", load)).code).toBe(2);
  expect((await backfill("--load", "5", "--status")).code).toBe(2);
});
