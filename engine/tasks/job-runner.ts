import { type LogFunctionFactory, type Runner, run, type TaskList, Logger as WorkerLogger } from "graphile-worker";
import pg from "pg";
import { retryDelay } from "../concurrency/retry-delay.ts";
import type { AsOwner } from "../database/owner-pool.ts";
import type { Logger } from "../output/log.ts";

/** Queries the catalogue, because that is no error if the schema does not exist or is not accessible. */
const HAS_TASKS = `
  select from pg_class
  where relnamespace = (select oid from pg_namespace where nspname = 'private') and relname = 'tasks'
    and has_schema_privilege(relnamespace, 'usage') and has_table_privilege(oid, 'insert')
    and has_database_privilege(current_database(), 'create')`;

const COUNT_TASKS = `
  select count(*) filter (where status = 'queued')::int as queued, count(*) filter (where status = 'running')::int as running
  from private.tasks where finished_at is null`;

export type JobRunner = {
  /** Waits this long for running jobs, then cancels them; another process retries them. Only the first call has an effect. */
  close(milliseconds: number): Promise<void>;
};

type JobRunnerOptions = {
  /** Connects as the owner, who creates the queue's schema if it does not exist. */
  readonly url: string;
  readonly tasks: TaskList;
  /** Called regularly, to requeue abandoned tasks and delete old ones. */
  readonly maintain: () => Promise<void>;
  /** Cancels running jobs, so that another process retries them. */
  readonly cancelRunning: () => Promise<void>;
  readonly log: Logger;
};

/** Each running job holds one connection. */
const CONCURRENCY = 4;
/** New jobs arrive by NOTIFY; polling finds retries that are due and jobs whose notification was lost. */
const POLL_INTERVAL_MS = 5_000;
const MAINTENANCE_INTERVAL_MS = 10_000;

/**
 * Without batching, graphile-worker 0.18 does not await the query that completes a job: if the database is unavailable,
 * the unhandled rejection ends the process. The result of a batch is awaited.
 */
const BATCHED_COMPLETION = { completeJobBatchDelay: 0, failJobBatchDelay: 0 };

/** Runs the jobs of graphile-worker's queue, which several processes share. */
export async function startJobRunner({
  url,
  tasks,
  maintain: runMaintenance,
  cancelRunning: cancelJobs,
  log,
}: JobRunnerOptions): Promise<JobRunner> {
  // One connection for each concurrent job, and one for LISTEN.
  const pgPool = new pg.Pool({
    connectionString: url,
    fallback_application_name: "jobs",
    max: CONCURRENCY + 1,
    keepAlive: true,
  });
  // The pool replaces lost connections when they are needed.
  const ignore = () => {};
  pgPool.on("error", ignore).on("connect", (client) => client.on("error", ignore));
  let isClosing = false;
  let failures = 0;
  let timer: NodeJS.Timeout | undefined;

  const start = async (): Promise<Runner> => {
    const runner = await run({
      pgPool,
      taskList: tasks,
      concurrency: CONCURRENCY,
      pollInterval: POLL_INTERVAL_MS,
      parsedCronItems: [],
      noHandleSignals: true,
      preset: { worker: BATCHED_COMPLETION },
      logger: new WorkerLogger(workerLogFunction(log)),
    });
    failures = 0;
    runner.promise.then(restartLater, restartLater);
    return runner;
  };

  const restartLater = (): void => {
    if (isClosing) return;
    failures++;
    timer = setTimeout(() => {
      start().then((runner) => (running = runner), restartLater);
    }, retryDelay(failures));
    timer.unref();
  };

  let running: Runner | null = null;
  const maintenance = setInterval(() => runMaintenance().catch(() => {}), MAINTENANCE_INTERVAL_MS).unref();
  const close = async (milliseconds: number): Promise<void> => {
    isClosing = true;
    clearTimeout(timer);
    clearInterval(maintenance);
    const cancelTimer = setTimeout(() => void cancelJobs().catch(() => {}), milliseconds);
    await running?.stop().catch(() => {});
    clearTimeout(cancelTimer);
    await pgPool.end();
  };
  try {
    running = await start();
    await runMaintenance();
  } catch (error) {
    // Otherwise the workers would keep the process alive that failed to start.
    await close(0);
    throw error;
  }
  let closing: Promise<void> | null = null;
  return { close: (milliseconds) => (closing ??= close(milliseconds)) };
}

/** Logs errors of graphile-worker as warnings, because it retries, and everything else for debugging only. */
function workerLogFunction(log: Logger): LogFunctionFactory {
  return () => (level, message) => {
    if (level === "error" || level === "warning") log.warn(message);
    else log.debug(message);
  };
}

/** Whether tasks can be queued: the table exists, and this login may write to it and create the queue's schema. */
export async function hasTasks(asOwner: AsOwner): Promise<boolean> {
  const { rowCount } = await asOwner((client) => client.query(HAS_TASKS));
  return rowCount === 1;
}

type TaskCounts = { readonly queued: number; readonly running: number };

/** Counts the tasks of all gateways, which share the queue. */
export async function countTasks(asOwner: AsOwner): Promise<TaskCounts> {
  const { rows } = await asOwner((client) => client.query<TaskCounts>(COUNT_TASKS));
  return rows[0]!;
}
