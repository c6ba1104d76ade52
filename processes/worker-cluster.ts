import cluster, { type Worker } from "node:cluster";
import { once } from "node:events";
import { extname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { retryDelay } from "../engine/concurrency/retry-delay.ts";
import { type Config, isEmbedded } from "../engine/config/config.ts";
import { bringUpToDate } from "../engine/migrate/migrate.ts";
import type { Logger } from "../engine/output/log.ts";
import { type ServedPostgres, startPostgres } from "../engine/postgres/served-postgres.ts";
import type { ServiceOperations } from "../rest-gateway/http/admin.ts";
import type { DrainMode } from "../rest-gateway/http/drain.ts";
import { checkListenAddress } from "../rest-gateway/http/server.ts";
import type { RunningService, ServiceOptions } from "../service.ts";
import { CLOSE_TIMEOUT_MS } from "./process-lifecycle.ts";

const MIN_RESTART_DELAY_MS = 250;
const MAX_RESTART_DELAY_MS = 30_000;
/** A replacement takes over only when its GraphQL schema is built, which takes long for thousands of tables. */
const REPLACEMENT_OPTIONS: Pick<WorkerOptions, "schemaPatienceMs"> = { schemaPatienceMs: 600_000 };
/** When a worker exits after having served this long, the restart delay starts at its minimum again. */
const STABLE_AFTER_MS = 60_000;

/** Each worker needs at least one connection per pool. */
const MIN_POOL_SIZE = 4;

/**
 * Runs the service in several processes at one address. The primary starts Postgres, migrates it and supervises the
 * workers, but serves no requests. All shared state is in Postgres.
 */
export async function startWorkerCluster(
  config: Config,
  { log, report, onFatalError }: ServiceOptions,
): Promise<RunningService> {
  await checkListenAddress(config);
  await using resources = new AsyncDisposableStack();
  const { close, ...postgres } = await startPostgres(config, report, onFatalError);
  resources.defer(close);
  await bringUpToDate({
    settings: postgres.migrate,
    requestUrl: postgres.requestUrl,
    isOwnDatabase: isEmbedded(config),
    report,
  });

  const size = config.workers;
  const poolSize = Math.max(MIN_POOL_SIZE, Math.floor(config.poolSize / size));
  const cluster = new WorkerCluster({ size, config: { ...config, poolSize }, postgres, log });
  resources.defer(() => cluster.stop());
  report(`starting ${size} processes`);
  const url = await cluster.start();

  const started = resources.move();
  return {
    url,
    postgres: { ...postgres, close },
    operations: {
      isReady: async () => (await cluster.query("isReady")).includes(true),
      measure: async () => (await cluster.query("measure")).flat(),
      underWay: async () => (await cluster.query("underWay")).flat(),
    },
    reload: () => cluster.replaceAll(),
    stop: () => started.disposeAsync(),
  };
}

export type WorkerClusterOptions = Pick<WorkerOptions, "config" | "postgres"> & {
  readonly size: number;
  readonly log: Pick<Logger, "info" | "warn" | "error">;
};

/** A fixed number of workers. Restarts workers that exit unexpectedly, and can replace all of them one by one. */
export class WorkerCluster {
  readonly #options: WorkerClusterOptions;
  readonly #workers = new Set<ManagedWorker>();
  readonly #stopping = new AbortController();
  #replacement: Promise<void> | null = null;
  #consecutiveFailures = 0;
  /** How many workers in a row exited before they were serving. */
  #failedStarts = 0;

  constructor(options: WorkerClusterOptions) {
    this.#options = options;
  }

  /** Resolves with the address when all workers serve. Starts one worker first, which does the one-time setup and reports errors once. */
  async start(): Promise<string> {
    const url = await this.#startWorker().serving;
    const others = Array.from({ length: this.#options.size - 1 }, () => this.#startWorker().serving);
    await Promise.all(others);
    return url;
  }

  /** Stops each worker when its replacement serves. If a replacement cannot start, the remaining workers stay. */
  replaceAll(): Promise<void> {
    this.#replacement ??= this.#replaceEach().finally(() => {
      this.#replacement = null;
    });
    return this.#replacement;
  }

  /** The answers of all serving workers. */
  async query<W extends WorkerQuery>(name: W): Promise<Awaited<ReturnType<ServiceOperations[W]>>[]> {
    const answers = await Promise.all(this.#servingWorkers.map((worker) => worker.query(name)));
    return answers.filter((answer) => answer !== undefined);
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await Promise.all([...this.#workers].map((worker) => worker.stop({})));
    await this.#replacement?.catch(() => {});
  }

  #startWorker(options: Pick<WorkerOptions, "schemaPatienceMs"> = {}): ManagedWorker {
    const { config, postgres } = this.#options;
    const worker = new ManagedWorker({ config, postgres, ...options });
    this.#workers.add(worker);
    worker.serving
      .then(() => {
        this.#failedStarts = 0;
        this.#reportShortage();
      })
      .catch(() => {});
    void worker.ended.then((reason) => this.#onEnd(worker, reason));
    return worker;
  }

  async #replaceEach(): Promise<void> {
    const { log } = this.#options;
    for (const worker of this.#servingWorkers) {
      if (this.#stopping.signal.aborted) return;
      const successor = this.#startWorker(REPLACEMENT_OPTIONS);
      await successor.serving;
      log.info({ worker: successor.id, instead: worker.id }, "a worker was replaced");
      await worker.stop({ othersStay: true });
      this.#reportShortage();
    }
  }

  async #onEnd(worker: ManagedWorker, reason: string): Promise<void> {
    this.#workers.delete(worker);
    if (worker.isStopping || this.#stopping.signal.aborted) return;
    const delay = this.#restartDelay(worker);
    this.#options.log.error({ worker: worker.id, reason, replacedInMs: delay }, "a worker process exited unexpectedly");
    this.#reportShortage();
    await sleep(delay, undefined, { signal: this.#stopping.signal }).catch(() => {});
    // A replacement of all workers also replaces this one.
    await this.#replacement?.catch(() => {});
    if (!this.#stopping.signal.aborted && this.#liveCount < this.#options.size) this.#startWorker();
  }

  #restartDelay({ startedAt, isServing }: ManagedWorker): number {
    if (performance.now() - startedAt > STABLE_AFTER_MS) this.#consecutiveFailures = 0;
    const delay = Math.min(MAX_RESTART_DELAY_MS, MIN_RESTART_DELAY_MS * 2 ** this.#consecutiveFailures++);
    if (!isServing) this.#failedStarts++;
    // Other workers are serving or starting.
    if (this.#liveCount > 0) return delay;
    return this.#failedStarts === 0 ? 0 : Math.round(retryDelay(this.#failedStarts));
  }

  get #servingWorkers(): ManagedWorker[] {
    return [...this.#workers].filter(({ isServing, isStopping }) => isServing && !isStopping);
  }

  /** Workers that are stopping are not counted, because their replacements are. */
  get #liveCount(): number {
    return [...this.#workers].filter(({ isStopping }) => !isStopping).length;
  }

  #reportShortage(): void {
    const { size } = this.#options;
    const serving = this.#servingWorkers.length;
    const fault = serving < size ? `${serving} of ${size} workers are serving.` : null;
    for (const worker of this.#workers) worker.send({ kind: "shortage", fault });
  }
}

/** With this file's extension: .ts in the source tree, .js in the package. */
const WORKER_PROGRAM = join(import.meta.dirname, `worker${extname(import.meta.filename)}`);
/** A worker that has not exited this long after its own time limit is killed. */
const KILL_GRACE_MS = 1_000;
/** A query that is not answered within this time is answered with undefined. */
const REPLY_TIMEOUT_MS = 5_000;

/** A worker process, from the primary's point of view. */
export class ManagedWorker {
  readonly startedAt = performance.now();
  /** Resolves with the worker's address when it serves; rejects if it exits before. */
  readonly serving: Promise<string>;
  /** Resolves with the exit code or signal. */
  readonly ended: Promise<string>;
  isServing = false;
  isStopping = false;
  readonly #worker: Worker;
  readonly #pendingReplies = new Map<number, (message: unknown) => void>();
  #nextRequestId = 0;
  readonly #stopTimeoutMs: number;

  constructor(options: WorkerOptions) {
    cluster.setupPrimary({ exec: WORKER_PROGRAM, args: [], serialization: "advanced" });
    this.#worker = cluster.fork();
    this.#stopTimeoutMs = options.config.drainTimeout * 1000 + CLOSE_TIMEOUT_MS + KILL_GRACE_MS;
    this.#worker.on("message", (message: unknown) => {
      if (isReport(message) && message.kind === "reply") this.#pendingReplies.get(message.id)?.(message.answer);
    });
    this.ended = once(this.#worker, "exit").then(([code, signal]) =>
      signal ? `signal ${signal}` : `exit code ${code}`,
    );
    this.serving = Promise.race([this.#whenServing(), this.ended.then(throwEndedEarly)]);
    this.serving.catch(() => {});
    this.send({ kind: "serve", worker: this.id, ...options });
  }

  get id(): number {
    return this.#worker.id;
  }

  /** An error is ignored: the worker has exited, and `ended` says so. */
  send(message: WorkerMessage): void {
    this.#worker.send(message, () => {});
  }

  /** Asks the worker for its state; undefined if it does not answer in time. */
  async query<W extends WorkerQuery>(name: W): Promise<Awaited<ReturnType<ServiceOperations[W]>> | undefined> {
    const id = this.#nextRequestId++;
    const { promise, resolve } = Promise.withResolvers<unknown>();
    this.#pendingReplies.set(id, resolve);
    const timer = setTimeout(() => resolve(undefined), REPLY_TIMEOUT_MS);
    this.send({ kind: "query", id, name });
    const message = await promise;
    clearTimeout(timer);
    this.#pendingReplies.delete(id);
    return message as Awaited<ReturnType<ServiceOperations[W]>> | undefined;
  }

  /** Resolves when the worker has exited; kills it if it hangs. */
  async stop(departure: DrainMode): Promise<void> {
    this.isStopping = true;
    this.send({ kind: "stop", departure });
    const killTimer = setTimeout(() => this.#worker.process.kill("SIGKILL"), this.#stopTimeoutMs);
    await this.ended;
    clearTimeout(killTimer);
  }

  #whenServing(): Promise<string> {
    return new Promise((resolve) => {
      this.#worker.on("message", (message: unknown) => {
        if (!isReport(message) || message.kind !== "serving") return;
        this.isServing = true;
        resolve(message.url);
      });
    });
  }
}

function throwEndedEarly(reason: string): never {
  throw new Error(`A worker exited before it was serving (${reason}); see its output above.`);
}

/** A message from the primary to a worker. */
export type WorkerMessage =
  | ({ readonly kind: "serve"; readonly worker: number } & WorkerOptions)
  /** Why fewer workers than configured are serving; null if all are. */
  | { readonly kind: "shortage"; readonly fault: string | null }
  /** Asks for the worker's state, for an operator. */
  | { readonly kind: "query"; readonly id: number; readonly name: WorkerQuery }
  | { readonly kind: "stop"; readonly departure: DrainMode };

/** How a worker is started. */
export type WorkerOptions = {
  readonly config: Config;
  readonly postgres: PostgresAccess;
  /** How long the worker waits for the GraphQL schema before it serves, if not the default. */
  readonly schemaPatienceMs?: number;
};

export type WorkerQuery = keyof ServiceOperations;

/** A message from a worker to the primary. */
export type WorkerReport =
  /** The worker serves at this address. */
  | { readonly kind: "serving"; readonly url: string }
  /** The answer to a query; undefined if it failed. */
  | { readonly kind: "reply"; readonly id: number; readonly answer: unknown };

/** How to reach Postgres, without the right to stop it. */
export type PostgresAccess = Omit<ServedPostgres, "close">;

/** Other libraries use the same channel. */
export function isReport(message: unknown): message is WorkerReport {
  const kind = (message as Partial<WorkerReport> | null)?.kind;
  return kind === "serving" || kind === "reply";
}
