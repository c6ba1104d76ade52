import { type LogFunctionFactory, type Runner, run, type TaskList, Logger as WorkerLogger } from "graphile-worker";
import pg from "pg";
import { delayBefore } from "../delay-before.ts";
import type { Logger } from "../log.ts";

export type Jobs = {
  /** Waits so long for jobs that are under way; those that are not over by then begin anew elsewhere. The first call counts. */
  close(milliseconds: number): Promise<void>;
};

type Options = {
  /** As the owner, who makes the queue's schema when there is none. */
  readonly url: string;
  readonly tasks: TaskList;
  /** Looks now and then after what has been left lying. */
  readonly tend: () => Promise<void>;
  /** Ends what is under way, as failed: it is tried again elsewhere. */
  readonly abandon: () => Promise<void>;
  readonly log: Logger;
};

/** Each has a connection of its own as long as it takes. */
const AT_ONCE = 4;
/** What is new is told by NOTIFY; this finds what is due again, and what a notification was lost of. */
const POLL_MS = 5_000;
const TEND_MS = 10_000;

/**
 * One at a time, graphile-worker 0.18 tells the database of a job's end without waiting for the answer: should the
 * database be away, the rejection is nobody's, and ends the process. Of batches it looks at the outcome.
 */
const BATCHES = { completeJobBatchDelay: 0, failJobBatchDelay: 0 };

/** Works on the jobs of graphile-worker's queue, together with every other process that does. */
export async function openJobs({ url, tasks, tend, abandon, log }: Options): Promise<Jobs> {
  // Each worker asks for jobs and says that they are done; one more connection listens.
  const pgPool = new pg.Pool({
    connectionString: url,
    fallback_application_name: "jobs",
    max: AT_ONCE + 1,
    keepAlive: true,
  });
  // What is lost is opened anew when it is needed.
  const ignore = () => {};
  pgPool.on("error", ignore).on("connect", (client) => client.on("error", ignore));
  let isClosing = false;
  let failures = 0;
  let timer: NodeJS.Timeout | undefined;

  const start = async (): Promise<Runner> => {
    const runner = await run({
      pgPool,
      taskList: tasks,
      concurrency: AT_ONCE,
      pollInterval: POLL_MS,
      parsedCronItems: [],
      noHandleSignals: true,
      preset: { worker: BATCHES },
      logger: new WorkerLogger(writeTo(log)),
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
    }, delayBefore(failures));
    timer.unref();
  };

  let running: Runner | null = null;
  const tending = setInterval(() => tend().catch(() => {}), TEND_MS).unref();
  const close = async (milliseconds: number): Promise<void> => {
    isClosing = true;
    clearTimeout(timer);
    clearInterval(tending);
    const cut = setTimeout(() => void abandon().catch(() => {}), milliseconds);
    await running?.stop().catch(() => {});
    clearTimeout(cut);
    await pgPool.end();
  };
  try {
    running = await start();
    await tend();
  } catch (error) {
    // Its workers would go on, and hold a process that has failed to start.
    await close(0);
    throw error;
  }
  let closing: Promise<void> | null = null;
  return { close: (milliseconds) => (closing ??= close(milliseconds)) };
}

/** Its errors are retried, so they are no more than warnings; what it does besides interests nobody but its authors. */
function writeTo(log: Logger): LogFunctionFactory {
  return () => (level, message) => {
    if (level === "error" || level === "warning") log.warn(message);
    else log.debug(message);
  };
}
