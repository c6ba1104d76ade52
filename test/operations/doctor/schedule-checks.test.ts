import { runMigrations } from "graphile-worker";
import { beforeAll, beforeEach, expect, test } from "vitest";
import { readScheduleFindings } from "../../../operations/doctor/schedule-checks.ts";
import { cloneDatabase, useClient, useDatabase } from "../../database.ts";
import { connect } from "../../db/callers.ts";

const database = useDatabase({ template: "platform" });
beforeAll(() => runMigrations({ connectionString: database.ownerUrl }));
const owner = useClient(database.ownerUrl);
beforeEach(async () => {
  await owner.query(`
    drop function if exists public.act; delete from api.schedules;
    create function public.act() returns void language sql as ''; grant execute on function public.act to service_role;
    insert into api.schedules (name, cron, function, role) values ('nightly', '30 3 * * *', 'public.act', 'service_role');
    update content_service.schedule_clock set processed = date_trunc('minute', now())`);
});

const problems = async () => (await readScheduleFindings(owner)).map(({ kind, problem }) => `${kind}: ${problem}`);
const addRuns = (status: string, count: number) =>
  owner.query(
    `insert into api.schedule_runs (schedule, planned_at, status, error)
     select 'nightly', now() - minutes * interval '1 minute', $1, '{"message": "No rows are left"}' from generate_series(1, $2::int) as minutes`,
    [status, count],
  );

test("a schedule that runs is no finding, and a database without schedules neither", async () => {
  await addRuns("done", 3);
  expect(await problems()).toEqual([]);
  const empty = await cloneDatabase("empty");
  try {
    const other = await connect(empty.ownerUrl);
    expect(await readScheduleFindings(other).finally(() => other.end())).toEqual([]);
  } finally {
    await empty.drop();
  }
});

test("a schedule whose function or role is gone is found, unless it is disabled", async () => {
  await owner.query("revoke execute on function public.act from service_role");
  expect(await readScheduleFindings(owner)).toMatchObject([
    {
      kind: "danger",
      problem: 'The schedule "nightly" cannot run: There is no function public.act that service_role may call.',
      fix: expect.stringContaining(
        "update api.schedules set is_enabled = false where name = 'nightly';  -- or: Write its name",
      ),
    },
  ]);
  await owner.query(
    "set session_replication_role = replica; update api.schedules set role = 'nobody'; reset session_replication_role",
  );
  expect(await problems()).toEqual(['danger: The schedule "nightly" cannot run: There is no role nobody.']);
  await owner.query("update api.schedules set is_enabled = false");
  expect(await problems()).toEqual([]);
});

test("a time zone that Postgres or the service does not know is found", async () => {
  await owner.query("update api.schedules set time_zone = 'Factory'");
  expect(await problems()).toEqual([
    'danger: The schedule "nightly" does not run: the service does not know the time zone Factory.',
  ]);
  await owner.query(
    "set session_replication_role = replica; update api.schedules set time_zone = 'Gone/City'; reset session_replication_role",
  );
  expect(await problems()).toEqual([
    'danger: The schedule "nightly" does not run: Postgres does not know the time zone Gone/City.',
  ]);
});

test("a schedule whose last run failed, or whose runs are skipped, is found", async () => {
  await addRuns("failed", 1);
  expect(await problems()).toEqual([
    expect.stringMatching(/^advice: The last run of the schedule "nightly", of .*Z, failed: No rows are left\.$/),
  ]);
  await owner.query("delete from api.schedule_runs");
  await addRuns("skipped", 3);
  expect(await problems()).toEqual([
    'advice: 3 runs of the schedule "nightly" were skipped in the last day: its runs take longer than the time between them.',
  ]);
});

test("schedules that no gateway runs are found", async () => {
  await owner.query("update content_service.schedule_clock set processed = '2026-01-01T00:00:00Z'");
  expect(await problems()).toEqual(["danger: No gateway has run the schedules since 2026-01-01T00:00:00.000Z."]);
});
