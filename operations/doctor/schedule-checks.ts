import pg from "pg";
import { findDueTimes } from "#jobs/cron-times";
import { hasSchedules } from "#jobs/queue";
import { queryApiSchema } from "#postgres/client";
import type { DoctorFinding } from "./facts.ts";

const READ_SCHEDULES = `
  select schedules.name, cron, time_zone as "timeZone", fault.message as fault, coalesce(fault.hint, '') as hint,
    exists (select from pg_catalog.pg_timezone_names as known where known.name = time_zone) as "isZoneKnown",
    ended.planned_at as "failedAt", ended.error->>'message' as failure,
    (
      select pg_catalog.count(*)::int from api.schedule_runs
      where schedule = schedules.name and status = 'skipped' and planned_at > pg_catalog.now() - interval '1 day'
    ) as skipped
  from api.schedules
  cross join lateral content_service.schedule_fault(schedules) as fault
  left join lateral (
    select planned_at, status, error from api.schedule_runs
    where schedule = schedules.name and status in ('done', 'failed') order by planned_at desc limit 1
  ) as ended on ended.status = 'failed'
  where is_enabled order by schedules.name`;
const READ_STOPPED_CLOCK =
  "select processed from content_service.schedule_clock where processed < pg_catalog.now() - interval '5 minutes'";

const MANY_SKIPPED = 3;

type ScheduleFacts = {
  readonly name: string;
  readonly cron: string;
  readonly timeZone: string;
  /** The reason why the schedule cannot run; null if it can. */
  readonly fault: string | null;
  readonly hint: string;
  /** True if Postgres knows the time zone. */
  readonly isZoneKnown: boolean;
  /** The time of the last finished run, if it failed. */
  readonly failedAt: Date | null;
  readonly failure: string | null;
  /** The skipped runs of the last day. */
  readonly skipped: number;
};

/** Schedules that cannot run, that fail, or that no gateway processes. */
export async function readScheduleFindings(owner: pg.ClientBase): Promise<DoctorFinding[]> {
  if (!(await hasSchedules(owner))) return [];
  const { rows: schedules } = await queryApiSchema<ScheduleFacts>(owner, READ_SCHEDULES);
  if (schedules.length === 0) return [];
  const { rows: stopped } = await owner.query<{ processed: Date }>(READ_STOPPED_CLOCK);
  return [...stopped.map(({ processed }) => clockFinding(processed)), ...schedules.flatMap(scheduleFindings)];
}

function clockFinding(processed: Date): DoctorFinding {
  return {
    kind: "danger",
    problem: `No gateway has run the schedules since ${processed.toISOString()}.`,
    fix: "-- Start a gateway with SCHEDULES=true, the default, whose owner login owns api.schedules.",
  };
}

function scheduleFindings(schedule: ScheduleFacts): DoctorFinding[] {
  const { name, timeZone, fault, hint, isZoneKnown, failedAt, failure, skipped } = schedule;
  const literal = pg.escapeLiteral(name);
  const findings: DoctorFinding[] = [];
  if (fault !== null) {
    const disable = `update api.schedules set is_enabled = false where name = ${literal};`;
    findings.push({
      kind: "danger",
      problem: `The schedule "${name}" cannot run: ${fault}.`,
      fix: `${disable}${hint && `  -- or: ${hint}`}`,
    });
  }
  if (!isZoneKnown || !canEvaluate(schedule)) {
    findings.push({
      kind: "danger",
      problem: `The schedule "${name}" does not run: ${isZoneKnown ? "the service" : "Postgres"} does not know the time zone ${timeZone}.`,
      fix: `update api.schedules set time_zone = 'UTC' where name = ${literal};  -- or another zone`,
    });
  }
  const history = `select * from api.schedule_runs where schedule = ${literal} order by planned_at desc;`;
  if (failedAt) {
    const problem = `The last run of the schedule "${name}", of ${failedAt.toISOString()}, failed: ${failure}.`;
    findings.push({ kind: "advice", problem, fix: history });
  }
  if (skipped >= MANY_SKIPPED) {
    const problem = `${skipped} runs of the schedule "${name}" were skipped in the last day: its runs take longer than the time between them.`;
    findings.push({ kind: "advice", problem, fix: history });
  }
  return findings;
}

function canEvaluate(schedule: ScheduleFacts): boolean {
  const now = new Date();
  try {
    findDueTimes(schedule, now, now);
    return true;
  } catch {
    return false;
  }
}
