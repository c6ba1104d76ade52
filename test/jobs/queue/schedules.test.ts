import pg from "pg";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { BACKUP_TASK } from "../../../cluster/archive/scheduled-backup.ts";
import { processSchedules, SCHEDULES_TASK, Schedules } from "../../../jobs/queue/schedules.ts";
import { withClient } from "../../../postgres/client/with-client.ts";
import type { AsOwner } from "../../../postgres/database/owner-pool.ts";
import { cloneDatabase, type TestDatabase, useClient, useDatabase } from "../../database.ts";
import { useFolder } from "../../fixture.ts";
import { startGateway } from "../../program.ts";
import { serve, useService } from "../../serve.ts";
import { until } from "../../until.ts";

const MINUTE_MS = 60_000;
const GATE = 42;
const FAIL = `create or replace function public.fail() returns void language plpgsql set search_path = '' as $$
  begin
    raise exception 'No rows are left' using errcode = 'NTFND';
  end $$;
  grant execute on function public.fail to authenticated, service_role`;
const FUNCTIONS = `
  create table public.ledger (note text not null, role text not null, claims jsonb);
  alter table public.ledger enable row level security;
  create policy insert_all on public.ledger for insert with check (true);
  grant insert on public.ledger to authenticated, service_role;
  create function public.note(note text default 'plain') returns void language plpgsql set search_path = '' as $$
  begin
    insert into public.ledger values (note, current_user, auth.jwt());
    perform pg_advisory_xact_lock_shared(${GATE});
  end $$;
  ${FAIL};
  create function public.sleep() returns void language sql as 'select pg_sleep(1000)';
  grant execute on all functions in schema public to authenticated, service_role;
`;

/** Most tests have one service, which runs tasks and leaves the schedules to the test. */
const sharedDatabase = useDatabase({ template: "platform", sql: FUNCTIONS });
const sharedOwner = useClient(sharedDatabase.ownerUrl);
useService({ database: sharedDatabase, settings: { BASE_SCHEMA: "platform", SCHEDULES: "false" } });

let database: TestDatabase;
let owner: pg.Client;
beforeEach(() => {
  database = sharedDatabase;
  owner = sharedOwner;
});
afterEach(async () => {
  if (owner !== sharedOwner) return;
  await until(isFinished);
  await owner.query(`
    delete from api.schedules; delete from api.schedule_runs; delete from content_service.tasks; delete from public.ledger;
    update content_service.schedule_clock set processed = default; ${FAIL}`);
});

/** Opens a database of its own for tests whose gateways process the schedules, or are killed. */
let opened: AsyncDisposableStack;
function useOwnDatabase(): void {
  beforeEach(async () => {
    opened = new AsyncDisposableStack();
    database = await cloneDatabase("platform");
    opened.defer(() => database.drop());
    owner = new pg.Client({ connectionString: database.ownerUrl });
    await owner.connect();
    opened.defer(() => owner.end());
    await owner.query(FUNCTIONS);
  });
  afterEach(() => opened.disposeAsync());
}

async function startService(settings: NodeJS.ProcessEnv): Promise<void> {
  const service = await serve(database, { BASE_SCHEMA: "platform", ...settings });
  opened.defer(() => service.stop());
}

/** The time that many minutes ago, without seconds. */
const minutesAgo = (count: number) => new Date(Math.floor(Date.now() / MINUTE_MS - count) * MINUTE_MS);

/** The cron text for these times of one day. */
function cronAt(...times: readonly Date[]): string {
  const [date] = times as [Date];
  const minutes = times.map((time) => time.getUTCMinutes());
  return `${minutes} ${date.getUTCHours()} ${date.getUTCDate()} ${date.getUTCMonth() + 1} *`;
}

type NewSchedule = {
  readonly name?: string;
  readonly cron: string;
  readonly since?: Date;
  readonly [column: string]: unknown;
};

/** Writes a schedule as if that had been done some time ago. */
async function write({ since = minutesAgo(30), ...columns }: NewSchedule): Promise<void> {
  const values = { name: "notes", function: "public.note", role: "service_role", ...columns };
  const names = Object.keys(values).map((name) => pg.escapeIdentifier(name));
  const places = names.map((_, index) => `$${index + 1}`);
  await owner.query(`insert into api.schedules (${names}) values (${places})`, Object.values(values));
  await owner.query("update api.schedules set changed_at = $1 where name = $2", [since, values.name]);
}

type LogLine = { readonly message: string; readonly [field: string]: unknown };

/** Processes the schedules as a gateway does each minute; returns its log. */
async function tick(plannedAt = new Date()): Promise<LogLine[]> {
  const lines: LogLine[] = [];
  const add = (fields: object, message: string) => lines.push({ ...fields, message });
  const asOwner: AsOwner = (work) => withClient(database.ownerUrl, work);
  await processSchedules({ asOwner, log: { warn: add, error: add } as never }, plannedAt);
  return lines;
}

type Run = {
  readonly schedule: string;
  readonly planned_at: Date;
  readonly status: string;
  readonly started_at: Date | null;
  readonly finished_at: Date | null;
  readonly error: { readonly code: string; readonly message: string } | null;
};

const runs = async (): Promise<Run[]> =>
  (await owner.query<Run>("select * from api.schedule_runs order by schedule, planned_at")).rows;
const statuses = async () => (await runs()).map(({ status }) => status);
const isFinished = async () => (await statuses()).every((status) => !["queued", "running"].includes(status));
const ledger = async () => (await owner.query("select * from public.ledger")).rows;

test("a function runs at its time as its role with its claims and arguments", async () => {
  const plannedAt = minutesAgo(1);
  await write({
    cron: cronAt(plannedAt),
    role: "authenticated",
    // The role of the schedule wins: who may write claims must not choose another one by them.
    claims: { sub: "1", org: 7, role: "service_role" },
    arguments: { note: "hello" },
  });
  await tick();
  await until(isFinished);
  const [run, ...others] = await runs();
  expect(others).toEqual([]);
  expect(run).toMatchObject({ schedule: "notes", planned_at: plannedAt, status: "done", error: null });
  expect(run!.finished_at!.getTime()).toBeGreaterThanOrEqual(run!.started_at!.getTime());
  expect(await ledger()).toEqual([
    { note: "hello", role: "authenticated", claims: { role: "authenticated", sub: "1", org: 7 } },
  ]);
  const { rows } = await owner.query("select next_run_at from api.schedules");
  expect(rows[0].next_run_at.getUTCFullYear()).toBe(plannedAt.getUTCFullYear() + 1);
});

describe("times at which no gateway ran", () => {
  test("are recorded as missed and logged in one line", async () => {
    const cron = `${minutesAgo(20).getUTCMinutes()} * * * *`;
    for (const name of ["a", "b"]) await write({ name, cron, since: minutesAgo(24 * 60) });
    const lines = await tick();
    const recorded = await runs();
    expect(recorded.length).toBeGreaterThanOrEqual(46);
    expect(new Set(recorded.map(({ status }) => status))).toEqual(new Set(["missed"]));
    expect(lines).toEqual([
      {
        runs: recorded.length,
        schedules: ["a", "b"],
        message: "runs of schedules were missed, because no gateway ran at that time",
      },
    ]);
    expect(await ledger()).toEqual([]);
  });

  test("of the last fifteen minutes: the last one runs", async () => {
    const times = [14, 3, 2].map(minutesAgo);
    // All times are in one hour, whenever the test runs.
    const cron = `${times.map((time) => time.getUTCMinutes())} * * * *`;
    await write({ cron, since: minutesAgo(15) });
    await tick();
    await until(isFinished);
    expect((await runs()).map(({ planned_at, status }) => [planned_at, status])).toEqual([
      [times[0], "missed"],
      [times[1], "missed"],
      [times[2], "done"],
    ]);
    expect(await ledger()).toHaveLength(1);
  });

  test("are made up for by one run if the schedule says so", async () => {
    const cron = `${minutesAgo(20).getUTCMinutes()} * * * *`;
    await write({ cron, since: minutesAgo(7 * 24 * 60), catch_up: true });
    await tick();
    await until(isFinished);
    const recorded = await statuses();
    expect(recorded).toEqual([...Array.from({ length: 99 }, () => "missed"), "done"]);
    expect(await ledger()).toHaveLength(1);
  });

  test("are forgotten where the schedule was disabled", async () => {
    await write({ cron: `${minutesAgo(2).getUTCMinutes()} * * * *`, since: minutesAgo(600) });
    await owner.query("update api.schedules set is_enabled = false");
    await tick();
    await owner.query("update api.schedules set is_enabled = true");
    await tick();
    expect(await runs()).toEqual([]);
  });
});

test("a schedule whose previous run is unfinished is skipped", async () => {
  await owner.query("select pg_advisory_lock($1)", [GATE]);
  await write({ cron: cronAt(minutesAgo(9)) });
  await tick();
  await until(async () => (await statuses())[0] === "running");
  await owner.query("update api.schedules set cron = $1", [cronAt(minutesAgo(3))]);
  await owner.query("update api.schedules set changed_at = $1", [minutesAgo(5)]);
  const lines = await tick();
  expect(lines).toEqual([
    {
      runs: 1,
      schedules: ["notes"],
      message: "runs of schedules were skipped, because the previous run is unfinished",
    },
  ]);
  await owner.query("select pg_advisory_unlock($1)", [GATE]);
  await until(isFinished);
  expect(await statuses()).toEqual(["done", "skipped"]);
  expect(await ledger()).toHaveLength(1);
  expect((await owner.query("select api.run_schedule('notes') as status")).rows).toEqual([{ status: "queued" }]);
  await until(isFinished);
  expect(await ledger()).toHaveLength(2);
});

describe("a run", () => {
  test("ends at the time limit of its schedule", async () => {
    await write({ cron: cronAt(minutesAgo(1)), function: "public.sleep", time_limit: "1 second" });
    await tick();
    await until(isFinished);
    expect((await runs())[0]).toMatchObject({ status: "failed", error: { code: "57014" } });
  });

  test("whose function is gone has failed, and does not prevent others", async () => {
    await write({ name: "a", cron: cronAt(minutesAgo(1)), function: "public.fail" });
    await write({ name: "b", cron: cronAt(minutesAgo(1)) });
    await owner.query("drop function public.fail");
    const lines = await tick();
    expect(lines).toMatchObject([
      { runs: 1, schedules: ["a"], message: expect.stringContaining("could not be queued") },
    ]);
    await until(isFinished);
    const [failed, done] = await runs();
    expect(failed).toMatchObject({ status: "failed", error: { code: "NTFND" } });
    expect(done).toMatchObject({ status: "done" });
  });

  test("whose task is deleted has failed, and does not prevent the next one", async () => {
    await write({ cron: cronAt(minutesAgo(1)) });
    await owner.query("begin");
    // No task begins.
    await owner.query("select from content_service.task_lanes for update");
    await tick();
    await until(async () => (await statuses())[0] === "queued");
    await owner.query("set local session_replication_role = replica");
    await owner.query("delete from content_service.tasks");
    await owner.query("set local session_replication_role = origin");
    expect((await owner.query("select api.run_schedule('notes') as status")).rows).toEqual([{ status: "queued" }]);
    await owner.query("commit");
    await until(isFinished);
    expect(await statuses()).toEqual(["failed", "done"]);
  });
});

describe("faults", () => {
  test("a fault of Postgres leaves nothing half done: the minute is processed again", async () => {
    await write({ name: "a", cron: cronAt(minutesAgo(1)) });
    await write({ name: "b", cron: cronAt(minutesAgo(1)) });
    await owner.query(`
      create function content_service.refuse() returns trigger language plpgsql set search_path = '' as $$
      begin
        if (select count(*) from content_service.tasks) = 1 then
          raise exception 'could not extend file' using errcode = '53100';
        end if;
        return NEW;
      end $$;
      create trigger refuse before insert on content_service.tasks for each row execute function content_service.refuse()`);
    await expect(tick()).rejects.toMatchObject({ code: "53100" });
    expect(await runs()).toEqual([]);
    await owner.query("drop trigger refuse on content_service.tasks");
    await tick();
    await until(isFinished);
    expect(await statuses()).toEqual(["done", "done"]);
  });

  test("a gateway whose clock is ahead runs nothing early", async () => {
    const inTenMinutes = minutesAgo(-10);
    await write({ cron: cronAt(inTenMinutes) });
    await tick(new Date(Date.now() + 24 * 60 * MINUTE_MS));
    expect(await runs()).toEqual([]);
    const { rows } = await owner.query("select next_run_at from api.schedules");
    expect(rows).toEqual([{ next_run_at: inTenMinutes }]);
  });

  test("when the database's clock was set back, times are counted from there, and none runs twice", async () => {
    await write({ cron: cronAt(minutesAgo(1)) });
    await tick();
    const inTenMinutes = minutesAgo(-10);
    await write({ name: "later", cron: cronAt(inTenMinutes) });
    await owner.query("update api.schedules set next_run_at = now() + interval '3 years'");
    await owner.query("update content_service.schedule_clock set processed = now() + interval '2 years'");
    const lines = await tick();
    expect(lines).toMatchObject([{ message: "the database's clock was set back: schedules run from there" }]);
    const { rows } = await owner.query("select next_run_at from api.schedules where name = 'later'");
    expect(rows).toEqual([{ next_run_at: inTenMinutes }]);
    await until(isFinished);
    expect(await statuses()).toEqual(["done"]);
    expect(await tick()).toEqual([]);
  });

  test("a schedule that is being changed is processed in the next minute, and delays no other", async () => {
    await write({ name: "a", cron: cronAt(minutesAgo(1)) });
    await write({ name: "b", cron: cronAt(minutesAgo(1)) });
    await withClient(database.ownerUrl, async (editor) => {
      await editor.query("begin; update api.schedules set catch_up = true where name = 'a'");
      await tick();
      expect((await runs()).map(({ schedule }) => schedule)).toEqual(["b"]);
    });
    await tick();
    expect((await runs()).map(({ schedule }) => schedule)).toEqual(["a", "b"]);
  });

  test("a time zone that the service does not know is logged, and prevents no other schedule", async () => {
    await write({ name: "a", cron: "* * * * *", time_zone: "Factory" });
    await write({ name: "b", cron: cronAt(minutesAgo(1)) });
    const lines = await tick();
    expect(lines).toMatchObject([{ schedule: "a", message: "the times of a schedule cannot be computed" }]);
    expect((await runs()).map(({ schedule }) => schedule)).toEqual(["b"]);
  });
});

test("a minute that began while no gateway ran is processed at the start, without waiting for the next one", async () => {
  await write({ cron: cronAt(minutesAgo(0)) });
  await owner.query("update content_service.schedule_clock set processed = $1", [minutesAgo(1)]);
  const asOwner: AsOwner = (work) => withClient(database.ownerUrl, work);
  const log = { warn() {}, error() {} };
  await new Schedules({ asOwner, log }).processLate();
  expect(await runs()).toHaveLength(1);
  await until(isFinished);
  expect(await statuses()).toEqual(["done"]);
});

test("of old runs, the last hundred are kept", async () => {
  await write({ cron: cronAt(minutesAgo(1)) });
  await owner.query(`
    insert into api.schedule_runs (schedule, planned_at, status)
    select 'notes', now() - hours * interval '1 hour', 'done' from generate_series(1, 24 * 7 + 200) as hours`);
  await tick();
  expect(await runs()).toHaveLength(24 * 7 + 1);
  await owner.query("update api.schedule_runs set planned_at = planned_at - interval '1 year'");
  await owner.query("update api.schedules set next_run_at = null");
  await tick();
  expect(await runs()).toHaveLength(100);
});

test("the state for metrics has the last success of each schedule", async () => {
  const plannedAt = minutesAgo(1);
  await write({ name: "a", cron: cronAt(plannedAt) });
  await write({ name: "b", cron: cronAt(plannedAt), function: "public.fail" });
  await tick();
  await until(isFinished);
  const schedules = new Schedules({ asOwner: (work) => withClient(database.ownerUrl, work), log: {} as never });
  const state = await schedules.readState();
  expect(state).toMatchObject({
    runs: { done: 1, failed: 1 },
    lastSuccess: { a: plannedAt.getTime() / 1_000, b: null },
  });
  expect(Date.now() - state.processed.getTime()).toBeLessThan(3 * MINUTE_MS);
});

/** Queues the task like graphile-worker's cron at each minute. */
function queueTick(): Promise<unknown> {
  const payload = JSON.stringify({ _cron: { ts: new Date().toISOString() } });
  return withClient(database.ownerUrl, (client) =>
    client.query("select graphile_worker.add_job($1, $2, job_key => $1, max_attempts => 3)", [SCHEDULES_TASK, payload]),
  );
}

describe("gateways of their own", () => {
  useOwnDatabase();
  const folder = useFolder("schedules-");

  test("each time runs once, however many gateways process it at the same time and again", async () => {
    await startService({});
    await startService({ BACKUP_SCHEDULE: "30 3 * * *", BACKUP_DIR: folder });
    const { rows } = await owner.query("select identifier from graphile_worker._private_known_crontabs order by 1");
    expect(rows).toEqual([{ identifier: BACKUP_TASK }, { identifier: SCHEDULES_TASK }]);
    const names = Array.from({ length: 20 }, (_, index) => `note ${index}`);
    for (const name of names) await write({ name, cron: cronAt(minutesAgo(1)), arguments: { note: name } });
    await Promise.all(Array.from({ length: 8 }, () => tick()));
    // The same holds if the record of the last run is lost.
    await owner.query("update api.schedules set next_run_at = null");
    await tick();
    await until(isFinished);
    expect((await ledger()).map(({ note }) => note).sort()).toEqual(names.toSorted());
    expect(await statuses()).toEqual(names.map(() => "done"));
  });

  test("a run whose function raises an error has failed, which is logged", async () => {
    const gateway = await startGateway(database, { BASE_SCHEMA: "platform", SCHEDULES: "false" });
    opened.defer(() => gateway.kill());
    await write({ cron: cronAt(minutesAgo(1)), function: "public.fail" });
    await tick();
    await until(isFinished);
    expect((await runs())[0]).toMatchObject({
      status: "failed",
      error: { code: "NTFND", message: "No rows are left" },
    });
    await until(() => `${gateway.printed()}${gateway.logged()}`.includes("a queued call failed"));
  });

  test("a gateway that is killed while it processes a minute blocks no other", async () => {
    const first = await startGateway(database, { BASE_SCHEMA: "platform" });
    opened.defer(() => first.kill());
    await write({ cron: cronAt(minutesAgo(1)) });
    await owner.query("begin");
    await owner.query("select from content_service.schedule_clock for update");
    await queueTick();
    // This needs another session: a transaction always sees the same activity.
    const isWaiting = (client: pg.ClientBase) =>
      client.query(
        "select from pg_stat_activity where query like '%begin_schedule_minutes%' and wait_event_type = 'Lock' and datname = $1",
        [database.name],
      );
    await withClient(database.ownerUrl, (client) => until(async () => (await isWaiting(client)).rowCount !== 0));
    await first.kill();
    await owner.query("commit");

    const second = await startGateway(database, { BASE_SCHEMA: "platform" });
    opened.defer(() => second.kill());
    await queueTick();
    await until(async () => (await runs()).length > 0 && (await isFinished()));
    expect(await statuses()).toEqual(["done"]);
    expect(await ledger()).toHaveLength(1);
  });

  test("a gateway makes up for the minutes at its start", async () => {
    await write({ cron: cronAt(minutesAgo(5)) });
    await owner.query("update content_service.schedule_clock set processed = $1", [minutesAgo(30)]);
    await startService({});
    await until(async () => (await runs()).length > 0 && (await isFinished()));
    expect(await statuses()).toEqual(["done"]);
  });

  test("a gateway with SCHEDULES=false runs none", async () => {
    await startService({ SCHEDULES: "false" });
    const { rows } = await owner.query("select identifier from graphile_worker._private_known_crontabs");
    expect(rows).toEqual([]);
  });
});
