import cluster, { type Worker } from "node:cluster";
import { extname, join } from "node:path";
import { pathToFileURL } from "node:url";
import type { ServiceOperations } from "#http/admin";
import type { ProcessMetrics, SharedActivity } from "#http/observability";
import type { DrainMode } from "#http/serving";
import { type PassedConnections, rescueConnections } from "./passed-connections.ts";
import { CLOSE_TIMEOUT_MS } from "./process-lifecycle.ts";
import {
  isReport,
  type PeerMessage,
  type WorkerMessage,
  type WorkerOptions,
  type WorkerQuery,
  type WorkerReport,
} from "./worker-messages.ts";

/** This file's extension: .ts in the source tree, .js in the package. */
const EXTENSION = extname(import.meta.filename);
const WORKER_PROGRAM = join(import.meta.dirname, `worker${EXTENSION}`);
/** The module that is loaded before the program. */
const COMPILE_CACHE = pathToFileURL(join(import.meta.dirname, "../cli/compile-cache.js")).href;
/** A worker that has not exited this long after its own time limit is killed. */
const KILL_GRACE_MS = 1_000;
/** A query that is not answered within this time is answered with undefined. */
const REPLY_TIMEOUT_MS = 5_000;
/** The timeout of messages between workers, which the sender may wait for. */
const DELIVERY_TIMEOUT_MS = 250;

type WorkerEvents = {
  /** A step of the worker's start, for the operator. */
  readonly onStep: (step: string) => void;
  readonly onGraphqlLoad: () => void;
  /** Resolves when the other workers have handled the message. */
  readonly publish: (message: PeerMessage) => Promise<void>;
  /** Returns the answers of all workers. */
  readonly queryAll: (name: keyof SharedActivity) => Promise<readonly unknown[]>;
};

/** A worker process, from the primary's point of view. */
export class ManagedWorker {
  readonly startedAt = performance.now();
  /** Resolves with the worker's address when it serves; rejects if it exits before. */
  readonly serving: Promise<string>;
  /** Resolves with the exit code or signal. */
  readonly ended: Promise<string>;
  /** Resolves when the worker needs no new connections, because it stops, or has exited. */
  readonly readyToClose: Promise<void>;
  /** The metrics that the worker reported last. */
  metrics: ProcessMetrics = [];
  isServing = false;
  isStopping = false;
  readonly #worker: Worker;
  readonly #events: WorkerEvents;
  readonly #passed: PassedConnections;
  readonly #whenReadyToClose = Promise.withResolvers<void>();
  readonly #whenServing = Promise.withResolvers<string>();
  readonly #pendingReplies = new Map<number, (answer: unknown) => void>();
  #nextRequestId = 0;
  readonly #stopTimeoutMs: number;

  constructor(drainTimeout: number, events: WorkerEvents) {
    // SIGUSR1 is handled by this process; in a worker it would open Node's inspector while the modules load.
    const execArgv = [...process.execArgv, "--disable-sigusr1", "--import", COMPILE_CACHE];
    cluster.setupPrimary({ exec: WORKER_PROGRAM, execArgv, args: [], serialization: "advanced" });
    this.#worker = cluster.fork();
    this.#passed = rescueConnections(this.#worker);
    this.#events = events;
    this.#stopTimeoutMs = drainTimeout * 1000 + CLOSE_TIMEOUT_MS + KILL_GRACE_MS;
    this.#worker.on("message", (message: unknown) => {
      // Other libraries use the same channel.
      if (isReport(message)) this.#handle(message);
    });
    this.ended = untilExit(this.#worker);
    this.readyToClose = Promise.race([this.#whenReadyToClose.promise, this.ended.then(() => {})]);
    this.serving = Promise.race([this.#whenServing.promise, this.ended.then(throwEndedEarly)]);
    this.serving.catch(() => {});
  }

  get id(): number {
    return this.#worker.id;
  }

  /** True if the primary has passed connections that the worker has not accepted yet. */
  get isPassedConnections(): boolean {
    return this.#passed.count() > 0;
  }

  serve(options: WorkerOptions): void {
    this.send({ kind: "serve", worker: this.id, ...options });
  }

  /** Sends the message. An error is ignored: the worker has exited, and `ended` says so. */
  send(message: WorkerMessage): void {
    this.#worker.send(message, () => {});
  }

  /** Asks the worker for its state; undefined if it does not answer in time. */
  query<W extends WorkerQuery>(name: W): Promise<Awaited<ReturnType<ServiceOperations[W]>> | undefined> {
    const answer = this.#request((id) => ({ kind: "query", id, name }), REPLY_TIMEOUT_MS);
    return answer as Promise<Awaited<ReturnType<ServiceOperations[W]>> | undefined>;
  }

  /** Resolves when the worker has handled another one's message. */
  async deliver(message: PeerMessage): Promise<void> {
    await this.#request((id) => ({ kind: "peer", id, ...message }), DELIVERY_TIMEOUT_MS);
  }

  /** Measures the worker. A worker that does not answer keeps its last metrics, so that no counter falls. */
  async measure(): Promise<void> {
    if (this.isServing) this.metrics = (await this.query("measure"))?.flat() ?? this.metrics;
  }

  /** Resolves when the worker has exited; kills it if it hangs. */
  async stop(departure: DrainMode): Promise<void> {
    this.isStopping = true;
    this.send({ kind: "stop", departure });
    const killTimer = setTimeout(() => this.#worker.process.kill("SIGKILL"), this.#stopTimeoutMs);
    await this.ended;
    clearTimeout(killTimer);
  }

  async #request(toMessage: (id: number) => WorkerMessage, timeoutMs: number): Promise<unknown> {
    const id = this.#nextRequestId++;
    const { promise, resolve } = Promise.withResolvers<unknown>();
    this.#pendingReplies.set(id, resolve);
    const timer = setTimeout(() => resolve(undefined), timeoutMs);
    this.send(toMessage(id));
    const answer = await promise;
    clearTimeout(timer);
    this.#pendingReplies.delete(id);
    return answer;
  }

  #handle(message: WorkerReport): void {
    switch (message.kind) {
      case "serving":
        this.isServing = true;
        this.#whenServing.resolve(message.url);
        break;
      case "ready to close":
        this.#whenReadyToClose.resolve();
        break;
      case "step":
        this.#events.onStep(message.step);
        break;
      case "graphql loaded":
        this.#events.onGraphqlLoad();
        break;
      case "reply":
        this.#pendingReplies.get(message.id)?.(message.answer);
        break;
      case "publish":
        void this.#publish(message);
        break;
      case "query all":
        void this.#queryAll(message);
        break;
      case "last metrics":
        this.metrics = message.metrics;
    }
  }

  async #queryAll({ id, name }: WorkerReport & { kind: "query all" }): Promise<void> {
    this.send({ kind: "answers", id, answers: await this.#events.queryAll(name) });
  }

  async #publish({ id, topic, content }: WorkerReport & { kind: "publish" }): Promise<void> {
    await this.#events.publish({ sender: this.id, topic, content });
    this.send({ kind: "published", id });
  }
}

/** Resolves when the worker has exited. An undelivered message is also an error, but then an exit follows, unless the process could not start. */
function untilExit(worker: Worker): Promise<string> {
  return new Promise((resolve) => {
    worker.on("exit", (code, signal) => resolve(signal ? `signal ${signal}` : `exit code ${code}`));
    worker.on("error", (error: NodeJS.ErrnoException) => {
      if (error.syscall?.startsWith("spawn")) resolve(error.message);
    });
  });
}

function throwEndedEarly(reason: string): never {
  throw new Error(`A worker exited before it was serving (${reason}); see its output above.`);
}
