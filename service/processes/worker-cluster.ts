import { setTimeout as sleep } from "node:timers/promises";
import { openWalArchive, startPostgres } from "#cluster";
import type { WalArchiveState } from "#cluster/wal-archive";
import { type Config, checkListenAddress, isEmbedded, MIN_POOL_SIZE } from "#config";
import type { ServiceOperations } from "#http/admin";
import { type ProcessMetrics, sumCounters } from "#http/observability";
import { bringUpToDate } from "#migrate";
import { packageProgram } from "#runtime";
import { retryDelay } from "#runtime/concurrency";
import type { Logger } from "#runtime/log";
import type { RunningService, ServiceOptions } from "../wiring/running-service.ts";
import { ManagedWorker } from "./managed-worker.ts";
import { followSharedListener } from "./shared-listener.ts";
import type { PeerMessage, PostgresAccess, WorkerOptions, WorkerQuery } from "./worker-messages.ts";

const MIN_RESTART_DELAY_MS = 250;
const MAX_RESTART_DELAY_MS = 30_000;
/** A replacement takes over only when its GraphQL schema is built, which takes long for thousands of tables. */
const REPLACEMENT_OPTIONS: Pick<WorkerOptions, "schemaPatienceMs"> = { schemaPatienceMs: 600_000 };
/** When a worker exits after having served this long, the restart delay starts at its minimum again. */
const STABLE_AFTER_MS = 60_000;
const PASSING_POLL_MS = 5;

/**
 * Runs the service in several processes at one address. The primary starts Postgres, migrates it and supervises the
 * workers, but serves no requests. Shared state is in Postgres, or passed between the workers.
 */
export async function startWorkerCluster(
  config: Config,
  { log, report, onFatalError }: ServiceOptions,
): Promise<RunningService> {
  await checkListenAddress(config);
  await using resources = new AsyncDisposableStack();
  let closePostgres = async () => {};
  resources.defer(() => closePostgres());
  report(`starting ${config.workers} processes`);
  const setupSteps = new Set<string>();
  // Workers report the same steps as the primary, because they find the same database.
  const reportOnce = (step: string) => {
    if (!setupSteps.has(step)) report(step);
    setupSteps.add(step);
  };
  const cluster = new WorkerCluster({ config: divideAmongWorkers(config), log, report: reportOnce });
  resources.defer(() => cluster.stop());
  const { close: stopPostgres, ...postgres } = await startPostgres(config, report, onFatalError);
  closePostgres = stopPostgres;
  await bringUpToDate({
    settings: postgres.migrate,
    requestUrl: postgres.requestUrl,
    isOwnDatabase: isEmbedded(config),
    report: reportOnce,
  });
  const onChange = (state: WalArchiveState) => cluster.reportWalArchive(state);
  const walArchive = await openWalArchive({ config, postgres, log, onChange });
  const close = async () => (walArchive ? walArchive.closeWith(stopPostgres) : stopPostgres());
  closePostgres = close;
  const url = await cluster.start(postgres);

  const started = resources.move();
  return {
    url,
    postgres: { ...postgres, close },
    operations: {
      isReady: async () => (await cluster.query("isReady")).includes(true),
      measure: () => cluster.measure(),
      underWay: async () => (await cluster.query("underWay")).flat(),
      activity: async () => (await cluster.query("activity")).flat(),
      recentEmails: async () => (await cluster.query("recentEmails")).flat(),
      recentRequests: async () => (await cluster.query("recentRequests")).flat(),
      functionLines: async () => (await cluster.query("functionLines")).flat(),
    },
    reload: () => cluster.replaceAll(),
    stop: () => started.disposeAsync(),
  };
}

/** The memory of all WebSockets of a worker is at least this multiple of what one of them may use. */
const MIN_FULL_SOCKETS = 4;

/** The settings of one worker: its part of what the service may use as a whole, and at least enough for one request. */
export function divideAmongWorkers(config: Config): Config {
  const { workers, poolSize, maxBodyBytes, maxBodyMemory, maxAnswerBytes, answerMemory, taskConcurrency } = config;
  const { webSocketBytes, webSocketTotalBytes, functionsMemory, functionsTotalMemory } = config;
  const part = (total: number, least: number) => Math.max(least, Math.floor(total / workers));
  return {
    ...config,
    workerShare: 1 / workers,
    poolSize: part(poolSize, MIN_POOL_SIZE),
    maxBodyMemory: part(maxBodyMemory, 2 * maxBodyBytes),
    answerMemory: part(answerMemory, 2 * maxAnswerBytes),
    webSocketTotalBytes: part(webSocketTotalBytes, MIN_FULL_SOCKETS * webSocketBytes),
    taskConcurrency: part(taskConcurrency, 1),
    functionsTotalMemory: part(functionsTotalMemory, functionsMemory),
  };
}

type WorkerClusterOptions = {
  /** The settings of a worker. */
  readonly config: Config;
  readonly log: Pick<Logger, "info" | "warn" | "error">;
  /** Prints the progress of the start. */
  readonly report: (step: string) => void;
};

/** A fixed number of workers. Restarts workers that exit unexpectedly, and can replace all of them one by one. */
class WorkerCluster {
  readonly #options: WorkerClusterOptions;
  readonly #size: number;
  readonly #workers = new Set<ManagedWorker>();
  /** Processes that have not received the order to serve. They load the program while Postgres starts. */
  readonly #waiting: ManagedWorker[];
  /** Workers that start for the first time and are not missing yet. */
  readonly #initial = new Set<ManagedWorker>();
  readonly #stopping = new AbortController();
  readonly #listener = followSharedListener();
  /** The counters of workers that have exited. */
  #endedCounters: ProcessMetrics = [];
  #postgres: PostgresAccess | null = null;
  #replacement: Promise<void> | null = null;
  #walArchive: WalArchiveState | null = null;
  /** True if GraphQL is used: workers that start later load it before they serve. */
  #isGraphqlUsed = false;
  #consecutiveFailures = 0;
  /** The number of workers in a row that exited before they were serving. */
  #failedStarts = 0;

  constructor(options: WorkerClusterOptions) {
    this.#options = options;
    this.#size = options.config.workers;
    this.#waiting = Array.from({ length: this.#size }, () => this.#fork());
  }

  /**
   * Resolves with the address when the first worker serves, which does the one-time setup and reports errors once. The
   * others follow.
   */
  async start(postgres: PostgresAccess): Promise<string> {
    this.#postgres = postgres;
    const first = this.#startWorker();
    this.#initial.add(first);
    const url = await first.serving;
    for (let worker = 1; worker < this.#size; worker++) this.#initial.add(this.#startWorker());
    return url;
  }

  /** Stops each worker when its replacement serves. If a replacement cannot start, the remaining workers stay. */
  replaceAll(): Promise<void> {
    this.#replacement ??= this.#replaceEach().finally(() => {
      this.#replacement = null;
    });
    return this.#replacement;
  }

  /** Returns the answers of all serving workers. */
  async query<W extends WorkerQuery>(name: W): Promise<Awaited<ReturnType<ServiceOperations[W]>>[]> {
    const answers = await Promise.all(this.#servingWorkers.map((worker) => worker.query(name)));
    return answers.filter((answer) => answer !== undefined);
  }

  /** Returns the metrics of all workers, and the counters of those that have exited. */
  async measure(): Promise<readonly ProcessMetrics[]> {
    await Promise.all([...this.#workers].map((worker) => worker.measure()));
    return [this.#endedCounters, ...[...this.#workers].map(({ metrics }) => metrics)];
  }

  /** Passes the state on to the workers: the primary archives the WAL, and the workers report it. */
  reportWalArchive(state: WalArchiveState): void {
    this.#walArchive = state;
    for (const worker of this.#workers) worker.send({ kind: "wal archive", state });
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    const workers = [...this.#workers];
    const stopped = [...this.#waiting, ...workers].map((worker) => worker.stop({}));
    await Promise.all(workers.map(({ readyToClose }) => readyToClose));
    for (const worker of workers) worker.send({ kind: "hold requests" });
    await this.#listener.close();
    while (workers.some((worker) => worker.isPassedConnections)) await sleep(PASSING_POLL_MS);
    for (const worker of workers) worker.send({ kind: "close server" });
    await Promise.all(stopped);
    await this.#replacement?.catch(() => {});
  }

  #fork(): ManagedWorker {
    return new ManagedWorker(this.#options.config.drainTimeout, {
      onStep: (step) => this.#options.report(step),
      onGraphqlLoad: () => {
        this.#isGraphqlUsed = true;
      },
      publish: (message) => this.#publish(message),
      queryAll: async (name) => (await this.query(name)).flat(),
    });
  }

  #startWorker(options: Pick<WorkerOptions, "schemaPatienceMs"> = {}): ManagedWorker {
    const worker = this.#waiting.shift() ?? this.#fork();
    this.#workers.add(worker);
    const config: Config = { ...this.#options.config, ...(this.#isGraphqlUsed && { graphqlPreload: true }) };
    const walArchive = this.#walArchive;
    worker.serve({ config, postgres: this.#postgres!, packageProgram: packageProgram(), walArchive, ...options });
    worker.serving
      .then(() => {
        this.#failedStarts = 0;
        this.#initial.delete(worker);
        this.#reportState();
      })
      .catch(() => {});
    void worker.ended.then((reason) => this.#onEnd(worker, reason));
    return worker;
  }

  async #replaceEach(): Promise<void> {
    const { log } = this.#options;
    await Promise.allSettled([...this.#initial].map(({ serving }) => serving));
    for (const worker of this.#servingWorkers) {
      if (this.#stopping.signal.aborted) return;
      const successor = this.#startWorker(REPLACEMENT_OPTIONS);
      await successor.serving;
      log.info({ worker: successor.id, instead: worker.id }, "a worker was replaced");
      await worker.stop({ othersStay: true });
      this.#reportState();
    }
  }

  async #onEnd(worker: ManagedWorker, reason: string): Promise<void> {
    this.#workers.delete(worker);
    this.#initial.delete(worker);
    this.#endedCounters = sumCounters([this.#endedCounters, worker.metrics]);
    for (const other of this.#workers) other.send({ kind: "peer exit", worker: worker.id });
    if (worker.isStopping || this.#stopping.signal.aborted) return;
    const delay = this.#restartDelay(worker);
    this.#options.log.error({ worker: worker.id, reason, replacedInMs: delay }, "a worker process exited unexpectedly");
    this.#reportState();
    await sleep(delay, undefined, { signal: this.#stopping.signal }).catch(() => {});
    // A replacement of all workers also replaces this one.
    await this.#replacement?.catch(() => {});
    if (!this.#stopping.signal.aborted && this.#liveCount < this.#size) this.#startWorker();
  }

  #restartDelay({ startedAt, isServing }: ManagedWorker): number {
    if (performance.now() - startedAt > STABLE_AFTER_MS) this.#consecutiveFailures = 0;
    const delay = Math.min(MAX_RESTART_DELAY_MS, MIN_RESTART_DELAY_MS * 2 ** this.#consecutiveFailures++);
    if (!isServing) this.#failedStarts++;
    // Other workers are serving or starting.
    if (this.#liveCount > 0) return delay;
    return this.#failedStarts === 0 ? 0 : Math.round(retryDelay(this.#failedStarts));
  }

  async #publish({ sender, topic, content }: PeerMessage): Promise<void> {
    const others = [...this.#workers].filter(({ id }) => id !== sender);
    const deliveries = others.map((worker) => {
      const delivery = worker.deliver({ sender, topic, content });
      return worker.isServing ? delivery : null;
    });
    await Promise.all(deliveries);
  }

  get #servingWorkers(): ManagedWorker[] {
    return [...this.#workers].filter(({ isServing, isStopping }) => isServing && !isStopping);
  }

  /** The number of workers without those that are stopping, because their replacements are counted. */
  get #liveCount(): number {
    return [...this.#workers].filter(({ isStopping }) => !isStopping).length;
  }

  #reportState(): void {
    // During a replacement there is one worker more.
    const serving = Math.min(this.#servingWorkers.length, this.#size);
    const isShort = serving + this.#initial.size + this.#waiting.length < this.#size;
    const fault = isShort ? `${serving} of ${this.#size} workers are serving.` : null;
    for (const worker of this.#workers) worker.send({ kind: "workers", state: { serving, fault } });
  }
}
