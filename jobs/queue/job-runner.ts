import { EventEmitter } from "node:events";
import {
  type CronItem,
  type LogFunctionFactory,
  parseCronItems,
  type Runner,
  run,
  type TaskList,
  type WorkerEvents,
  Logger as WorkerLogger,
} from "graphile-worker";
import type pg from "pg";
import type { Listener } from "#postgres/client";
import type { AsOwner } from "#postgres/database";
import { type KeptWork, type RepeatedWork, type StartedWork, Supervisor } from "#runtime/concurrency";
import type { Logger } from "#runtime/log";
import { JobPool, type LanePool } from "./job-pool.ts";

/** Jobs that wait for each other, but not for those of other lanes. */
export type JobLane = {
  /** The name for health and metrics. */
  readonly name: string;
  readonly tasks: TaskList;
  /** The number of jobs to run at once; each may hold one connection. */
  readonly concurrency: number;
  /** The tasks to queue at certain times, once for all processes. */
  readonly crons?: readonly CronItem[];
};

type JobRunnerOptions = {
  /** The URL of the owner, who creates the queue's schema if it does not exist. */
  readonly url: string;
  readonly lanes: readonly JobLane[];
  /** Hears of new jobs for all lanes. */
  readonly listener: Listener;
  /** Called regularly, to requeue abandoned tasks and delete old ones. */
  readonly maintain: () => Promise<void>;
  /** Cancels running jobs, so that another process retries them. */
  readonly cancelRunning: () => Promise<void>;
  readonly supervisor?: Supervisor;
  readonly log: Logger;
};

/** New jobs arrive by NOTIFY; polling finds retries that are due and jobs whose notification was lost. */
const POLL_INTERVAL_MS = 5_000;
const MAINTENANCE_INTERVAL_MS = 10_000;
/** The time limit of a stop for the last statements of cancelled jobs. */
const STOP_TIMEOUT_MS = 2_000;
/** If the workers show no sign for this time, they have ended, their connections are dead, or the tables of the queue are locked. */
const STUCK_MS = 20_000;
const STUCK_CHECK_MS = 5_000;

/**
 * Without batching, graphile-worker 0.18 does not await the query that completes a job: if the database is unavailable,
 * the unhandled rejection ends the process. The result of a batch is awaited.
 */
const BATCHED_COMPLETION = { completeJobBatchDelay: 0, failJobBatchDelay: 0 };

/** Starts to run the jobs of graphile-worker's queue, which several processes share. */
export async function startJobRunner(options: JobRunnerOptions): Promise<JobRunner> {
  const runner = new JobRunner(options);
  try {
    await runner.start();
    return runner;
  } catch (error) {
    // Otherwise the workers would keep alive the process that failed to start.
    await runner.close(0);
    throw error;
  }
}

export class JobRunner {
  readonly #options: Required<JobRunnerOptions>;
  readonly #pool: JobPool;
  #lanes: readonly KeptWork[] = [];
  #maintenance: RepeatedWork | null = null;
  #starting: Promise<void> | null = null;
  #closing: Promise<void> | null = null;

  constructor(options: JobRunnerOptions) {
    this.#options = { supervisor: new Supervisor(options), ...options };
    const { url, lanes } = options;
    this.#pool = new JobPool(
      url,
      lanes.reduce((sum, { concurrency }) => sum + concurrency, 0),
    );
  }

  /** Rejects if it is closed before it has started. */
  start(): Promise<void> {
    this.#starting ??= this.#start();
    return this.#starting;
  }

  /** Starts one lane after the other: the first one creates the queue's schema. */
  async #start(): Promise<void> {
    const { lanes, supervisor, maintain } = this.#options;
    for (const lane of lanes) {
      const start = () => startLane(lane, { ...this.#options, pool: this.#pool });
      this.#lanes = [...this.#lanes, await supervisor.keep(lane.name, start)];
      if (this.#closing) throw new Error("The runner was closed while it started");
    }
    await maintain();
    if (this.#closing) throw new Error("The runner was closed while it started");
    const maintainAgain = async () => void (await maintain());
    const pauses = { pauseMs: MAINTENANCE_INTERVAL_MS, firstPauseMs: MAINTENANCE_INTERVAL_MS };
    this.#maintenance = supervisor.repeat("queue maintenance", maintainAgain, pauses);
  }

  /**
   * Waits this long for running jobs, then cancels them; another process retries them. Unresponsive connections are closed
   * soon after that. Only the first call has an effect.
   */
  close(milliseconds: number): Promise<void> {
    this.#closing ??= this.#close(milliseconds);
    return this.#closing;
  }

  async #close(milliseconds: number): Promise<void> {
    const maintained = this.#maintenance?.close();
    const cancelTimer = setTimeout(() => void this.#options.cancelRunning().catch(() => {}), milliseconds);
    const destroyTimer = setTimeout(() => this.#pool.destroy(), milliseconds + STOP_TIMEOUT_MS);
    await this.#starting?.catch(() => {});
    await Promise.all(this.#lanes.map((lane) => lane.close()));
    clearTimeout(cancelTimer);
    clearTimeout(destroyTimer);
    if (!this.#pool.ending) await this.#pool.end();
    await maintained;
  }
}

type LaneOptions = Pick<JobRunnerOptions, "listener" | "log"> & { readonly pool: JobPool };

async function startLane(lane: JobLane, { pool, listener, log }: LaneOptions): Promise<StartedWork> {
  const own = pool.openLane(listener, lane.concurrency);
  const events = new EventEmitter();
  const watch = watchProgress(events, lane.concurrency);
  let runner: Runner;
  try {
    runner = await runLane(lane, { pool: own, events, log });
  } catch (error) {
    watch.close();
    own.close();
    throw error;
  }
  return {
    // The promise alone would not be enough, because it waits for all connections that the runner has opened.
    ended: Promise.race([runner.promise, watch.ended]),
    async stop() {
      watch.close();
      if (!watch.hasEnded()) await runner.stop().catch(() => {});
      own.close();
    },
  };
}

function runLane(
  { tasks, concurrency, crons = [] }: JobLane,
  { pool, events, log }: { readonly pool: LanePool; readonly events: EventEmitter; readonly log: Logger },
): Promise<Runner> {
  return run({
    pgPool: pool as EventEmitter as pg.Pool,
    taskList: tasks,
    concurrency,
    pollInterval: POLL_INTERVAL_MS,
    parsedCronItems: parseCronItems([...crons]),
    noHandleSignals: true,
    preset: { worker: BATCHED_COMPLETION },
    logger: new WorkerLogger(workerLogFunction(log)),
    events: events as WorkerEvents,
  });
}

type ProgressWatch = {
  readonly ended: Promise<never>;
  /** True if the runner has reported its end: if it were stopped again, it would release its connections twice. */
  hasEnded(): boolean;
  close(): void;
};

/** The events of graphile-worker for workers that end and are not replaced. */
const END_EVENTS = [
  "stop",
  "pool:fatalError",
  "pool:gracefulShutdown",
  "pool:forcefulShutdown",
  "pool:release",
  "worker:fatalError",
  "worker:stop",
];

/**
 * Rejects when the runner has ended or gets errors instead of jobs, even if it does not report that: an idle worker requests
 * a job every few seconds, and always gets a response.
 */
function watchProgress(events: EventEmitter, concurrency: number): ProgressWatch {
  const busy = new Set<unknown>();
  const unanswered = new Map<unknown, number>();
  const ended = Promise.withResolvers<never>();
  ended.promise.catch(() => {});
  let hasEnded = false;
  let lastAskedAt = performance.now();
  events.on("worker:getJob:start", ({ worker }) => {
    lastAskedAt = performance.now();
    busy.delete(worker);
    unanswered.set(worker, lastAskedAt);
  });
  for (const answer of ["worker:getJob:empty", "job:start"])
    events.on(answer, ({ worker }) => unanswered.delete(worker));
  // The worker would request a job again forever, each time after the poll interval, and report nothing.
  events.on("worker:getJob:error", ({ error }) => ended.reject(error));
  events.on("job:start", ({ worker }) => busy.add(worker));
  for (const end of END_EVENTS)
    events.on(end, () => {
      hasEnded = true;
      ended.reject(new Error(`The runner has ended (${end})`));
    });
  const timer = setInterval(() => {
    const oldest = Math.min(...unanswered.values(), busy.size < concurrency ? lastAskedAt : Number.POSITIVE_INFINITY);
    if (performance.now() - oldest > STUCK_MS)
      ended.reject(new Error("The workers do not ask for jobs, or get no answer"));
  }, STUCK_CHECK_MS).unref();
  return { ended: ended.promise, hasEnded: () => hasEnded, close: () => clearInterval(timer) };
}

/** Logs errors of graphile-worker as warnings, because it retries, and other messages for debugging only. */
function workerLogFunction(log: Logger): LogFunctionFactory {
  return () => (level, message) => {
    if (level === "error" || level === "warning") log.warn(message);
    else log.debug(message);
  };
}

/** The query reads the catalogue, so it does not fail if the schema does not exist or is not accessible. */
const HAS_TASKS = `
  select from pg_catalog.pg_class
  where relnamespace = (select oid from pg_catalog.pg_namespace where nspname = 'content_service') and relname = 'tasks'
    and pg_catalog.has_schema_privilege(relnamespace, 'usage') and pg_catalog.has_table_privilege(oid, 'insert')
    and pg_catalog.has_database_privilege(pg_catalog.current_database(), 'create')`;

/** True if tasks can be queued: the table exists, and this login may write to it and create the queue's schema. */
export async function hasTasks(asOwner: AsOwner): Promise<boolean> {
  const { rowCount } = await asOwner((client) => client.query(HAS_TASKS));
  return rowCount === 1;
}

const COUNT_TASKS = `
  select pg_catalog.count(*) filter (where status = 'queued' and run_at <= pg_catalog.now())::int as queued,
    pg_catalog.count(*) filter (where status = 'queued' and run_at > pg_catalog.now())::int as scheduled,
    pg_catalog.count(*) filter (where status = 'running')::int as running,
    (select pg_catalog.count(*)::int from content_service.tasks where status = 'failed') as failed
  from content_service.tasks where finished_at is null`;

/** Scheduled tasks are queued, but not due yet. Failed ones are kept for a day. */
type TaskCounts = {
  readonly queued: number;
  readonly scheduled: number;
  readonly running: number;
  readonly failed: number;
};

/** Counts the tasks of all gateways, which share the queue. */
export async function countTasks(asOwner: AsOwner): Promise<TaskCounts> {
  const { rows } = await asOwner((client) => client.query<TaskCounts>(COUNT_TASKS));
  return rows[0]!;
}

const READ_TASKS = `
  select (select pg_catalog.count(*)::integer from content_service.tasks where status = 'queued' and finished_at is null) as queued,
    (select pg_catalog.count(*)::integer from content_service.tasks where status = 'running' and finished_at is null) as running,
    (select pg_catalog.count(*)::integer from content_service.tasks where status = 'failed') as failed,
    (
      select coalesce(pg_catalog.jsonb_agg(pg_catalog.to_jsonb(recent.*) order by recent.created_at desc), '[]')
      from (
        (
          select id, work, owner, status, created_at, started_at, finished_at, null::pg_catalog.jsonb as error from content_service.tasks
          where finished_at is null order by created_at limit 20
        ) union all (
          select id, work, owner, status, created_at, started_at, finished_at, error from content_service.tasks
          where status = 'failed' order by finished_at desc limit 20
        )
      ) as recent
    ) as tasks`;

type ListedTask = {
  readonly id: string;
  /** The method and path of the request, or the function. */
  readonly work: string;
  readonly owner: string;
  readonly status: string;
  readonly created_at: string;
  readonly started_at: string | null;
  readonly finished_at: string | null;
  readonly error: unknown;
};

/** The tasks of all gateways. The list contains those that wait or run, and the last ones that failed, which are kept for a day. */
type TaskActivity = Omit<TaskCounts, "scheduled"> & { readonly tasks: readonly ListedTask[] };

/** Returns null if the database has no queue for tasks. */
export async function readTaskActivity(asOwner: AsOwner): Promise<TaskActivity | null> {
  if (!(await hasTasks(asOwner))) return null;
  const { rows } = await asOwner((client) => client.query<TaskActivity>(READ_TASKS));
  return rows[0]!;
}
