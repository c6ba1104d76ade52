import cluster, { type Worker } from "node:cluster";
import { once } from "node:events";
import { extname, join } from "node:path";
import type { ServiceOperations } from "../rest-gateway/http/admin.ts";
import type { DrainMode } from "../rest-gateway/http/drain.ts";
import { CLOSE_TIMEOUT_MS } from "./process-lifecycle.ts";
import { isReport, type WorkerMessage, type WorkerOptions, type WorkerQuery } from "./worker-messages.ts";

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
