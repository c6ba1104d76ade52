import { EventEmitter, once } from "node:events";
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
import pg from "pg";
import { retryDelay } from "../concurrency/retry-delay.ts";
import type { AsOwner } from "../database/owner-pool.ts";
import { suspectsStandby } from "../database/standby-check.ts";
import type { Logger } from "../output/log.ts";
import { findServer } from "../pg-client/server-finder.ts";

/** Jobs that wait for one another, but not for those of other lanes. */
export type JobLane = {
  /** For health and metrics. */
  readonly name: string;
  readonly tasks: TaskList;
  /** The number of jobs to run at once; each holds one connection. */
  readonly concurrency: number;
  /** Tasks to queue at certain times, once for all processes. */
  readonly crons?: readonly CronItem[];
};

type JobRunnerOptions = {
  /** Connects as the owner, who creates the queue's schema if it does not exist. */
  readonly url: string;
  readonly lanes: readonly JobLane[];
  /** Called regularly, to requeue abandoned tasks and delete old ones. */
  readonly maintain: () => Promise<void>;
  /** Cancels running jobs, so that another process retries them. */
  readonly cancelRunning: () => Promise<void>;
  readonly log: Logger;
};

/** New jobs arrive by NOTIFY; polling finds retries that are due and jobs whose notification was lost. */
const POLL_INTERVAL_MS = 5_000;
const MAINTENANCE_INTERVAL_MS = 10_000;
const CONNECT_TIMEOUT_MS = 10_000;
/** A runner that has run for so long is started again at once when it ends. */
const STEADY_MS = 10_000;

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
    await options.maintain();
    return runner;
  } catch (error) {
    // Otherwise the workers would keep the process alive that failed to start.
    await runner.close(0);
    throw error;
  }
}

export class JobRunner {
  readonly #options: JobRunnerOptions;
  readonly #lanes: readonly LaneRunner[];
  readonly #maintenance: NodeJS.Timeout;
  #closing: Promise<void> | null = null;

  constructor(options: JobRunnerOptions) {
    this.#options = options;
    this.#lanes = options.lanes.map((lane) => new LaneRunner(lane, options));
    this.#maintenance = setInterval(() => options.maintain().catch(() => {}), MAINTENANCE_INTERVAL_MS).unref();
  }

  /** One after the other: the first one creates the queue's schema. */
  async start(): Promise<void> {
    for (const lane of this.#lanes) await lane.start();
  }

  /** The names of the lanes whose runner has ended and is not running again yet. */
  stopped(): readonly string[] {
    return this.#lanes.filter(({ isRunning }) => !isRunning).map(({ name }) => name);
  }

  /** How often a runner has ended by itself and was started again. */
  restarts(): number {
    return this.#lanes.reduce((sum, { restarts }) => sum + restarts, 0);
  }

  /** Waits this long for running jobs, then cancels them; another process retries them. Only the first call has an effect. */
  close(milliseconds: number): Promise<void> {
    this.#closing ??= this.#close(milliseconds);
    return this.#closing;
  }

  async #close(milliseconds: number): Promise<void> {
    clearInterval(this.#maintenance);
    const cancelTimer = setTimeout(() => void this.#options.cancelRunning().catch(() => {}), milliseconds);
    await Promise.all(this.#lanes.map((lane) => lane.stop()));
    clearTimeout(cancelTimer);
  }
}

/**
 * Runs the jobs of one lane, again if the runner ends. Each runner has a pool of its own: one that ends with an error may keep
 * connections, which the next one would wait for.
 */
class LaneRunner {
  readonly #lane: JobLane;
  readonly #options: Pick<JobRunnerOptions, "url" | "log">;
  #pool: pg.Pool | null = null;
  #runner: Runner | null = null;
  #isRunning = false;
  #restarts = 0;
  #failures = 0;
  #startedAt = 0;
  #restartTimer: NodeJS.Timeout | undefined;
  #restarting: Promise<void> | null = null;
  #isStopping = false;

  constructor(lane: JobLane, options: Pick<JobRunnerOptions, "url" | "log">) {
    this.#lane = lane;
    this.#options = options;
  }

  get name(): string {
    return this.#lane.name;
  }

  get isRunning(): boolean {
    return this.#isRunning;
  }

  get restarts(): number {
    return this.#restarts;
  }

  async start(): Promise<void> {
    const pool = makePool(this.#options.url, this.#lane.concurrency);
    const events = new EventEmitter();
    const stopped = once(events, "stop");
    try {
      this.#runner = await this.#run(pool, events);
    } catch (error) {
      await pool.end();
      throw error;
    }
    this.#pool = pool;
    this.#isRunning = true;
    this.#startedAt = performance.now();
    const settled = this.#runner.promise.catch(() => {});
    // Not only the promise, which waits for everything that the runner has opened.
    void Promise.race([stopped, settled]).then(() => this.#replaceLater(pool));
  }

  async stop(): Promise<void> {
    this.#isStopping = true;
    clearTimeout(this.#restartTimer);
    await this.#restarting;
    await this.#runner?.stop().catch(() => {});
    await this.#pool?.end();
  }

  #run(pgPool: pg.Pool, events: EventEmitter): Promise<Runner> {
    const { tasks, concurrency, crons = [] } = this.#lane;
    return run({
      pgPool,
      taskList: tasks,
      concurrency,
      pollInterval: POLL_INTERVAL_MS,
      parsedCronItems: parseCronItems([...crons]),
      noHandleSignals: true,
      preset: { worker: BATCHED_COMPLETION },
      logger: new WorkerLogger(workerLogFunction(this.#options.log)),
      events: events as WorkerEvents,
    });
  }

  #replaceLater(pool: pg.Pool): void {
    if (this.#isStopping) return;
    this.#isRunning = false;
    this.#runner = null;
    this.#pool = null;
    // It waits for the connections that are in use.
    pool.end().catch(() => {});
    if (performance.now() - this.#startedAt > STEADY_MS) this.#failures = 0;
    this.#restartLater();
  }

  #restartLater(): void {
    if (this.#isStopping) return;
    this.#failures++;
    this.#restartTimer = setTimeout(() => {
      this.#restarting = this.#restart();
    }, retryDelay(this.#failures));
    this.#restartTimer.unref();
  }

  async #restart(): Promise<void> {
    try {
      await this.start();
      this.#restarts++;
    } catch (error) {
      if (this.#failures === 1)
        this.#options.log.warn({ err: error, lane: this.name }, "jobs do not run; trying again");
      this.#restartLater();
    }
  }
}

/** One connection for each concurrent job, and one for LISTEN. The pool replaces lost connections when they are needed. */
function makePool(url: string, concurrency: number): pg.Pool {
  const pool = new pg.Pool({
    Client: findServer(url).makePoolClient(CONNECT_TIMEOUT_MS),
    fallback_application_name: "jobs",
    max: concurrency + 1,
    keepAlive: true,
  });
  const ignore = () => {};
  return pool.on("error", ignore).on("connect", (client) => {
    client.on("error", ignore);
    // The next session is checked: it is one of a primary.
    const { connection } = client as pg.PoolClient & { readonly connection: pg.Connection };
    connection.on("errorMessage", (error) => {
      if (suspectsStandby(error)) setImmediate(() => connection.stream.destroy());
    });
  });
}

/** Logs errors of graphile-worker as warnings, because it retries, and everything else for debugging only. */
function workerLogFunction(log: Logger): LogFunctionFactory {
  return () => (level, message) => {
    if (level === "error" || level === "warning") log.warn(message);
    else log.debug(message);
  };
}

/** Queries the catalogue, because that is no error if the schema does not exist or is not accessible. */
const HAS_TASKS = `
  select from pg_class
  where relnamespace = (select oid from pg_namespace where nspname = 'private') and relname = 'tasks'
    and pg_catalog.has_schema_privilege(relnamespace, 'usage') and pg_catalog.has_table_privilege(oid, 'insert')
    and pg_catalog.has_database_privilege(pg_catalog.current_database(), 'create')`;

/** Whether tasks can be queued: the table exists, and this login may write to it and create the queue's schema. */
export async function hasTasks(asOwner: AsOwner): Promise<boolean> {
  const { rowCount } = await asOwner((client) => client.query(HAS_TASKS));
  return rowCount === 1;
}

const COUNT_TASKS = `
  select pg_catalog.count(*) filter (where status = 'queued' and run_at <= pg_catalog.now())::int as queued,
    pg_catalog.count(*) filter (where status = 'queued' and run_at > pg_catalog.now())::int as scheduled,
    pg_catalog.count(*) filter (where status = 'running')::int as running,
    (select pg_catalog.count(*)::int from private.tasks where status = 'failed') as failed
  from private.tasks where finished_at is null`;

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
  select (select pg_catalog.count(*)::integer from private.tasks where status = 'queued' and finished_at is null) as queued,
    (select pg_catalog.count(*)::integer from private.tasks where status = 'running' and finished_at is null) as running,
    (select pg_catalog.count(*)::integer from private.tasks where status = 'failed') as failed,
    (
      select coalesce(pg_catalog.jsonb_agg(pg_catalog.to_jsonb(recent.*) order by recent.created_at desc), '[]')
      from (
        (
          select id, work, owner, status, created_at, started_at, finished_at, null::jsonb as error from private.tasks
          where finished_at is null order by created_at limit 20
        ) union all (
          select id, work, owner, status, created_at, started_at, finished_at, error from private.tasks
          where status = 'failed' order by finished_at desc limit 20
        )
      ) as recent
    ) as tasks`;

type ListedTask = {
  readonly id: string;
  /** Method and path of the request, or the function. */
  readonly work: string;
  readonly owner: string;
  readonly status: string;
  readonly created_at: string;
  readonly started_at: string | null;
  readonly finished_at: string | null;
  readonly error: unknown;
};

/** The tasks of all gateways. Listed are those that wait or run, and the last ones that failed, which are kept for a day. */
export type TaskActivity = Omit<TaskCounts, "scheduled"> & { readonly tasks: readonly ListedTask[] };

/** Null if the database has no queue for tasks. */
export async function readTaskActivity(asOwner: AsOwner): Promise<TaskActivity | null> {
  if (!(await hasTasks(asOwner))) return null;
  const { rows } = await asOwner((client) => client.query<TaskActivity>(READ_TASKS));
  return rows[0]!;
}
