import type { CronItem, TaskList } from "graphile-worker";
import type pg from "pg";
import { queryApiSchema } from "#postgres/client";
import { type AsOwner, inOwnerTransaction } from "#postgres/database";
import { runStepwise, type Stepwise } from "#runtime/concurrency";
import type { Logger } from "#runtime/log";
import { findDueTimes } from "../cron/cron-times.ts";

/** The name of the task in graphile-worker's queue that processes the schedules. */
export const SCHEDULES_TASK = "content_service_schedules";

/** The maximum delay of a run without `catch_up`. */
const MAX_LATENESS_MS = 15 * 60_000;
const MAX_LOGGED_NAMES = 20;

/** The query reads the catalogue, so it does not fail if the schema does not exist or is not accessible. */
const HAS_SCHEDULES = `
  select from pg_catalog.pg_class
  where relnamespace = (select oid from pg_catalog.pg_namespace where nspname = 'api') and relname = 'schedules'
    and pg_catalog.has_schema_privilege(relnamespace, 'usage') and pg_catalog.has_table_privilege(oid, 'update')`;

type ScheduleOptions = { readonly asOwner: AsOwner; readonly log: Pick<Logger, "warn" | "error"> };

/** True if the database has schedules that this login may process. */
export async function hasSchedules(client: pg.ClientBase): Promise<boolean> {
  return (await queryApiSchema(client, HAS_SCHEDULES)).rowCount === 1;
}

/** Returns null if the database has no schedules that this login may process. */
export async function openSchedules(options: ScheduleOptions): Promise<Schedules | null> {
  return (await options.asOwner(hasSchedules)) ? new Schedules(options) : null;
}

/** Queues the runs of the schedules: once for all gateways, which share the queue. */
export class Schedules {
  readonly #options: ScheduleOptions;

  /**
   * The item runs each minute. It has no queue of its own, so that a job of a killed process does not block the next ones;
   * the row of the clock is locked instead.
   */
  readonly cron: CronItem = {
    task: SCHEDULES_TASK,
    identifier: SCHEDULES_TASK,
    match: "* * * * *",
    options: { jobKey: SCHEDULES_TASK, maxAttempts: 3, priority: -1_000 },
  };

  constructor(options: ScheduleOptions) {
    this.#options = options;
  }

  get tasks(): TaskList {
    return {
      [SCHEDULES_TASK]: (payload) => {
        const { ts } = (payload as { readonly _cron: { readonly ts: string } })._cron;
        return processSchedules(this.#options, new Date(ts));
      },
    };
  }

  /**
   * Processes a minute that began while no gateway ran: graphile-worker's cron starts with the next one. This also covers
   * its restarts, and its wait for the time of a gateway whose clock was ahead.
   */
  async processLate(): Promise<void> {
    const { rows } = await this.#options.asOwner((client) => client.query<{ now: Date }>(FIND_LATE));
    if (rows[0]) await processSchedules(this.#options, rows[0].now);
  }

  /** Reads the state that all gateways share. */
  async readState(): Promise<SchedulesState> {
    const { rows } = await this.#options.asOwner((client) => queryApiSchema<SchedulesState>(client, READ_STATE));
    return rows[0]!;
  }
}

/** Returns the database's time if a minute has begun that is not processed. */
const FIND_LATE =
  "select pg_catalog.now() as now from content_service.schedule_clock where processed < pg_catalog.date_trunc('minute', pg_catalog.now())";

const BEGIN_MINUTES = "select processed, until, was_set_back from content_service.begin_schedule_minutes($1)";
/** A schedule that is being changed is processed in the next minute. */
const READ_SCHEDULES = `
  select name, cron, time_zone as "timeZone", catch_up as "catchUp",
    coalesce(next_run_at - interval '1 minute', pg_catalog.date_trunc('minute', changed_at)) as after
  from api.schedules where is_enabled and (next_run_at is null or next_run_at <= $1)
  order by name for no key update skip locked`;
const RECORD_MINUTES = "select schedule, status, runs::int from content_service.record_schedule_minutes($1, $2)";

type Minutes = { readonly processed: Date; readonly until: Date; readonly was_set_back: boolean };

type WaitingSchedule = {
  readonly name: string;
  readonly cron: string;
  readonly timeZone: string;
  readonly catchUp: boolean;
  /** The time up to which all times were processed. */
  readonly after: Date;
};

type ScheduleOutcome = {
  readonly name: string;
  /** The time to run for now; the latest if there are several. */
  readonly due: Date | null;
  readonly missed: readonly Date[];
  readonly next: Date | null;
};

type RecordedRuns = { readonly schedule: string; readonly status: string; readonly runs: number };

/**
 * Queues the runs that are due since the last processed minute, all or none. Several processes may do so at the same
 * time: each minute is processed once.
 */
export async function processSchedules({ asOwner, log }: ScheduleOptions, plannedAt: Date): Promise<void> {
  const unreadable: { name: string; err: unknown }[] = [];
  const { minutes, recorded } = await inOwnerTransaction(asOwner, async (client) => {
    const minutes = (await client.query<Minutes>(BEGIN_MINUTES, [plannedAt])).rows[0]!;
    const { rows: schedules } = await queryApiSchema<WaitingSchedule>(client, READ_SCHEDULES, [minutes.until]);
    unreadable.length = 0;
    const outcomes = await runStepwise(
      evaluateSchedules(schedules, minutes.until, (name, err) => unreadable.push({ name, err })),
    );
    return { minutes, recorded: await recordMinutes(client, minutes.until, outcomes) };
  });
  if (minutes.was_set_back)
    log.warn({ until: minutes.until }, "the database's clock was set back: schedules run from there");
  for (const { name, err } of unreadable)
    log.error({ schedule: name, err }, "the times of a schedule cannot be computed");
  logRuns(log, recorded);
}

async function recordMinutes(
  client: pg.ClientBase,
  until: Date,
  outcomes: readonly ScheduleOutcome[],
): Promise<readonly RecordedRuns[]> {
  return (await client.query<RecordedRuns>(RECORD_MINUTES, [until, JSON.stringify(outcomes)])).rows;
}

function* evaluateSchedules(
  schedules: readonly WaitingSchedule[],
  until: Date,
  onError: (name: string, error: unknown) => void,
): Stepwise<ScheduleOutcome[]> {
  const outcomes: ScheduleOutcome[] = [];
  for (const schedule of schedules) {
    try {
      outcomes.push(evaluateSchedule(schedule, until));
    } catch (error) {
      onError(schedule.name, error);
    }
    yield;
  }
  return outcomes;
}

function evaluateSchedule(schedule: WaitingSchedule, until: Date): ScheduleOutcome {
  const { due, next } = findDueTimes(schedule, schedule.after, until);
  const latest = due.at(-1) ?? null;
  const isRun = latest !== null && (schedule.catchUp || until.getTime() - latest.getTime() <= MAX_LATENESS_MS);
  return { name: schedule.name, due: isRun ? latest : null, missed: isRun ? due.slice(0, -1) : due, next };
}

const MESSAGES: Record<string, string> = {
  missed: "runs of schedules were missed, because no gateway ran at that time",
  skipped: "runs of schedules were skipped, because the previous run is unfinished",
  failed: "runs of schedules could not be queued; api.schedule_runs says why",
};

/** Logs one line for each status that an operator should know. */
function logRuns(log: Pick<Logger, "warn">, recorded: readonly RecordedRuns[]): void {
  for (const [status, message] of Object.entries(MESSAGES)) {
    const affected = recorded.filter((each) => each.status === status);
    if (affected.length === 0) continue;
    const runs = affected.reduce((sum, each) => sum + each.runs, 0);
    log.warn({ runs, schedules: affected.slice(0, MAX_LOGGED_NAMES).map(({ schedule }) => schedule) }, message);
  }
}

/** The number of schedules with a metric of their own. */
const MAX_MEASURED_SCHEDULES = 100;
const READ_STATE = `
  select (select processed from content_service.schedule_clock) as processed,
    (
      select coalesce(pg_catalog.jsonb_object_agg(status, runs), '{}') from (
        select status, pg_catalog.count(*) as runs from api.schedule_runs where planned_at > pg_catalog.now() - interval '1 hour' group by status
      ) as counted
    ) as runs,
    (
      select coalesce(pg_catalog.jsonb_object_agg(name, extract(epoch from planned_at)::pg_catalog.float8), '{}') from (
        select name, (
          select planned_at from api.schedule_runs
          where schedule = name and status = 'done' order by planned_at desc limit 1
        ) as planned_at
        from api.schedules where is_enabled order by name limit ${MAX_MEASURED_SCHEDULES}
      ) as latest
    ) as "lastSuccess"`;

export type SchedulesState = {
  /** The last minute that was processed. */
  readonly processed: Date;
  /** The runs of the last hour, by status. */
  readonly runs: Readonly<Record<string, number>>;
  /** The planned time of the last successful run in seconds, by schedule; null if none is known. */
  readonly lastSuccess: Readonly<Record<string, number | null>>;
};

const READ_ACTIVITY = `
  select name, cron, time_zone, function, is_enabled, case when is_enabled then next_run_at end as next_run_at, last_run, current_run
  from api.schedules
    left join lateral (
      select pg_catalog.jsonb_build_object(
        'planned_at', planned_at, 'status', status, 'milliseconds', extract(epoch from finished_at - started_at) * 1000, 'error', error
      ) from api.schedule_runs
      where schedule = name and status not in ('queued', 'running') order by planned_at desc limit 1
    ) as last (last_run) on true
    left join lateral (
      select pg_catalog.jsonb_build_object('planned_at', planned_at, 'status', status, 'started_at', started_at) from api.schedule_runs
      where schedule = name and status in ('queued', 'running') order by planned_at desc limit 1
    ) as current (current_run) on true
  order by name limit $1`;

/** The state of a schedule for operators. */
type ScheduleActivity = {
  readonly name: string;
  readonly cron: string;
  readonly time_zone: string;
  readonly function: string;
  readonly is_enabled: boolean;
  readonly next_run_at: Date | null;
  readonly last_run: {
    readonly planned_at: string;
    readonly status: string;
    readonly milliseconds: number | null;
    readonly error: unknown;
  } | null;
  /** The run that waits in the queue, or is running. */
  readonly current_run: {
    readonly planned_at: string;
    readonly status: string;
    readonly started_at: string | null;
  } | null;
};

/** Returns the first schedules by name. Null if the database has no schedules that this login may process. */
export async function readScheduleActivity(
  asOwner: AsOwner,
  limit: number,
): Promise<readonly ScheduleActivity[] | null> {
  if (!(await asOwner(hasSchedules))) return null;
  return (await asOwner((client) => queryApiSchema<ScheduleActivity>(client, READ_ACTIVITY, [limit]))).rows;
}
