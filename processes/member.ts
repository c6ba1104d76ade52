import cluster, { type Worker } from "node:cluster";
import { once } from "node:events";
import { extname, join } from "node:path";
import type { Operable } from "../rest-gateway/admin.ts";
import type { Departure } from "../rest-gateway/drain.ts";
import { LETTING_GO_MS } from "./ending.ts";
import { type Asked, type Beginning, isReport, type Order } from "./orders.ts";

/** With the ending that this file has: it may have been built. */
const PROGRAM = join(import.meta.dirname, `worker${extname(import.meta.filename)}`);
/** One that has not even ended itself by so long after it should have hangs. */
const GRACE_MS = 1_000;
/** What it is asked in between is told within this time, or not at all. */
const PATIENCE_MS = 5_000;

/** One worker, as the process that looks after it knows it. */
export class Member {
  readonly startedAt = performance.now();
  /** Resolves with its address when it serves; rejects when it ends before. */
  readonly serving: Promise<string>;
  /** Resolves with how it ended. */
  readonly ended: Promise<string>;
  isServing = false;
  isLeaving = false;
  readonly #worker: Worker;
  readonly #asked = new Map<number, (answer: unknown) => void>();
  #questions = 0;
  readonly #patienceMs: number;

  constructor(beginning: Beginning) {
    cluster.setupPrimary({ exec: PROGRAM, args: [], serialization: "advanced" });
    this.#worker = cluster.fork();
    this.#patienceMs = beginning.config.drainTimeout * 1000 + LETTING_GO_MS + GRACE_MS;
    this.#worker.on("message", (message: unknown) => {
      if (isReport(message) && message.kind === "told") this.#asked.get(message.id)?.(message.answer);
    });
    this.ended = once(this.#worker, "exit").then(([code, signal]) =>
      signal ? `signal ${signal}` : `exit code ${code}`,
    );
    this.serving = Promise.race([this.#whenServing(), this.ended.then(endedEarly)]);
    this.serving.catch(() => {});
    this.tell({ kind: "serve", worker: this.id, ...beginning });
  }

  get id(): number {
    return this.#worker.id;
  }

  /** Who has just ended hears nothing any more, which its end tells. */
  tell(order: Order): void {
    this.#worker.send(order, () => {});
  }

  /** What it says of itself; undefined where it says nothing in time. */
  async ask<W extends Asked>(what: W): Promise<Awaited<ReturnType<Operable[W]>> | undefined> {
    const id = this.#questions++;
    const { promise, resolve } = Promise.withResolvers<unknown>();
    this.#asked.set(id, resolve);
    const silence = setTimeout(() => resolve(undefined), PATIENCE_MS);
    this.tell({ kind: "ask", id, what });
    const answer = await promise;
    clearTimeout(silence);
    this.#asked.delete(id);
    return answer as Awaited<ReturnType<Operable[W]>> | undefined;
  }

  /** Resolves when it has ended; one that hangs is ended. */
  async leave(departure: Departure): Promise<void> {
    this.isLeaving = true;
    this.tell({ kind: "leave", departure });
    const hangs = setTimeout(() => this.#worker.process.kill("SIGKILL"), this.#patienceMs);
    await this.ended;
    clearTimeout(hangs);
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

function endedEarly(how: string): never {
  throw new Error(`A process ended before it served (${how}): what it said is above.`);
}
