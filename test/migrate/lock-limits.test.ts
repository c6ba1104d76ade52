import { rm } from "node:fs/promises";
import { join } from "node:path";
import pg from "pg";
import { afterAll, beforeAll, expect, test } from "vitest";
import { runMigrations } from "../../migrate/migrate.ts";
import { useFixture } from "../fixture.ts";
import { until } from "../until.ts";
import { ownHistories } from "./own-histories.ts";

let holder: pg.Client;
let reader: pg.Client;
const own = useFixture(() => ownHistories(["platform"], { isMigrated: true }));
beforeAll(async () => {
  await own.add("project", "notes", "create table public.notes (id int primary key, text text)");
  await runMigrations({ name: "migrate" }, own.settings);
  holder = new pg.Client({ connectionString: `${own.settings.url}&application_name=nightly-report` });
  reader = new pg.Client({ connectionString: own.settings.url });
  await Promise.all([holder.connect(), reader.connect()]);
});
afterAll(async () => {
  await Promise.all([holder.end(), reader.end()]);
});

const LIMITS = { lockTimeoutMs: 300, lockRetries: 2, maxHoldMs: 0 };

function migrate(limits: Partial<typeof LIMITS>, report: (line: string) => void = () => {}) {
  return runMigrations({ name: "migrate", report }, { ...own.settings, lockLimits: { ...LIMITS, ...limits } });
}

/** Writes the last migration, which failed, anew. */
async function replaceLast(message: string, sql: string): Promise<void> {
  const last = (await own.committed("project")).at(-1)!;
  await rm(join(own.history("project").folder, "committed", last));
  await own.add("project", message, sql);
}

async function columns(): Promise<unknown[]> {
  const rows = await own.rows(
    "select attname from pg_attribute where attrelid = 'public.notes'::regclass and attnum > 0 order by attnum",
  );
  return rows.map(({ attname }) => attname);
}

test("names the statement, the table and the holder of a lock that a migration does not get, while reads go on", async () => {
  await holder.query("begin; select from public.notes");
  await own.add("project", "likes", "select 1;\nalter table public.notes\n  add column likes int");
  const lines: string[] = [];
  let isDone = false;
  let reads = 0;
  const reading = (async () => {
    while (!isDone) {
      await reader.query("select from public.notes");
      reads++;
    }
  })();
  const error: Error = await migrate({}, (line) => lines.push(line)).then(
    () => expect.unreachable(),
    (thrown) => thrown,
  );
  isDone = true;
  await reading;
  expect(error.message).toContain(
    "000002-likes.sql:6:1: The access exclusive lock on public.notes was not granted within 300 ms.",
  );
  expect(error.message).toMatch(
    /held by pid \d+ \(nightly-report, login \w+, idle in transaction, in a transaction since 2/,
  );
  expect(error.message).toContain("It was tried 3 times.");
  expect(error.message).not.toContain("select from public.notes");
  expect(lines).toHaveLength(2);
  expect(lines[1]).toContain("It is tried again in 0.5 s.");
  // Behind a migration that waits without a limit, the first one would wait until the holder has ended.
  expect(reads).toBeGreaterThan(10);
  expect(await columns()).toEqual(["id", "text"]);
});

test("applies the migration once the lock is free", async () => {
  const applied = migrate({ lockRetries: 1000 }, () => void holder.query("commit"));
  await applied;
  expect(await columns()).toEqual(["id", "text", "likes"]);
});

test("cancels a migration that holds reads for longer than the limit, and does not try it again", async () => {
  await own.add("project", "slow", "alter table public.notes add column slow int;\nselect pg_sleep(600)");
  const lines: string[] = [];
  const migrating = migrate({ maxHoldMs: 200 }, (line) => lines.push(line));
  let isOver = false;
  migrating.catch(() => (isOver = true));
  await until(async () => {
    const held = await own.rows(
      "select from pg_locks where relation = 'public.notes'::regclass and mode = 'AccessExclusiveLock' and granted",
    );
    return held.length > 0 || isOver;
  });
  const read = reader.query("select from public.notes");
  await expect(migrating).rejects.toThrow(
    "reads of public.notes waited for it longer than 200 ms (MIGRATE_MAX_HOLD_MS). Nothing of it was applied.",
  );
  await read;
  expect(lines).toEqual([]);
  expect(await columns()).toEqual(["id", "text", "likes"]);
});

test("does not start over for the lock of a row, behind which nobody waits, nor for nowait", async () => {
  await own.rows("insert into public.notes values (1, 'a')");
  await holder.query("begin; update public.notes set text = 'b'");
  const lines: string[] = [];
  await replaceLast("slow", "select 1;\nupdate public.notes set text = 'c'");
  await expect(migrate({}, (line) => lines.push(line))).rejects.toThrow(
    /:6:1: The lock of a row of public.notes was not granted within 300 ms. It is held by pid \d+ \(nightly-report/,
  );
  await replaceLast("slow", "select 1;\nselect from public.notes for update nowait");
  await expect(migrate({}, (line) => lines.push(line))).rejects.toThrow("could not obtain lock on row");
  expect(lines).toEqual([]);
  await holder.query("commit");
});

const BACKFILL = `create procedure public.backfill() language plpgsql as $$ begin
  update public.notes set text = 'filled'; commit;
  lock public.notes; perform pg_sleep(0.3); end $$`;

test("neither limits nor repeats what runs without a transaction", async () => {
  await replaceLast("slow", BACKFILL);
  await migrate({});
  await own.add("project", "backfill", "--! no-transaction: it commits\ncall public.backfill()");
  await holder.query("begin; select from public.notes");
  const lines: string[] = [];
  const migrating = migrate({ lockTimeoutMs: 100, maxHoldMs: 1 }, (line) => lines.push(line));
  let isOver = false;
  migrating.catch(() => {}).finally(() => (isOver = true));
  await until(async () => isOver || (await waits()));
  const read = reader.query("select from public.notes");
  await new Promise((resolve) => setTimeout(resolve, 300));
  await holder.query("commit");
  await migrating;
  await read;
  expect(lines).toEqual([]);
});

test("does not wait without a limit where others wait behind it, and says that it may be partly applied", async () => {
  await own.rows("create table public.parts (id int) partition by list (id)");
  await own.rows("create table public.part partition of public.parts for values in (1)");
  await own.add(
    "project",
    "detach",
    "--! no-transaction\nalter table public.parts detach partition public.part concurrently",
  );
  await holder.query("begin; select from public.parts");
  const lines: string[] = [];
  await expect(migrate({}, (line) => lines.push(line))).rejects.toThrow("may be partly applied");
  expect(lines).toEqual([]);
  await holder.query("commit");
});

async function waits(): Promise<boolean> {
  const waiting = await own.rows("select from pg_locks where relation = 'public.notes'::regclass and not granted");
  return waiting.length > 0;
}
