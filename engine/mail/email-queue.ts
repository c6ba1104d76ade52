import { setTimeout as sleep } from "node:timers/promises";
import type { Logger } from "../output/log.ts";
import type { Email, Mailer } from "./mailer.ts";

/** Creates the e-mail just before it is sent; null if there is nothing to send. */
export type PrepareEmail = () => Promise<Email | null>;

type EmailQueueOptions = {
  readonly mailer: Mailer;
  readonly log: Pick<Logger, "warn" | "error">;
  /** The delay before each retry. */
  readonly retryDelaysMs?: readonly number[];
  readonly maxWaiting?: number;
};

/** Retries end soon: the user can request another e-mail. */
const RETRY_DELAYS_MS = [1_000, 10_000];
const CONCURRENCY = 2;
/** Bounds the memory that a flood of requests can use. */
const MAX_WAITING = 1_000;

/** Sends e-mails in the background, so that the response time does not show whether there was one to send. */
export class EmailQueue {
  readonly #mailer: Mailer;
  readonly #log: EmailQueueOptions["log"];
  readonly #retryDelaysMs: readonly number[];
  readonly #maxWaiting: number;
  readonly #waiting: PrepareEmail[] = [];
  readonly #running = new Set<Promise<void>>();
  readonly #closing = new AbortController();
  #workers = 0;

  constructor({ mailer, log, retryDelaysMs = RETRY_DELAYS_MS, maxWaiting = MAX_WAITING }: EmailQueueOptions) {
    this.#mailer = mailer;
    this.#log = log;
    this.#retryDelaysMs = retryDelaysMs;
    this.#maxWaiting = maxWaiting;
  }

  add(prepare: PrepareEmail): void {
    if (this.#closing.signal.aborted) return;
    if (this.#waiting.length >= this.#maxWaiting) {
      this.#log.warn({ waiting: this.#maxWaiting }, "the e-mail queue is full; an e-mail was dropped");
      return;
    }
    this.#waiting.push(prepare);
    if (this.#workers >= CONCURRENCY) return;
    const worker = this.#runWorker().finally(() => this.#running.delete(worker));
    this.#running.add(worker);
  }

  /** Accepts no more e-mails and resolves when the queue is empty. */
  async close(): Promise<void> {
    this.#closing.abort();
    await Promise.all(this.#running);
    this.#mailer.close();
  }

  async #runWorker(): Promise<void> {
    this.#workers++;
    for (let prepare = this.#waiting.shift(); prepare; prepare = this.#waiting.shift()) {
      try {
        const email = await prepare();
        if (email) await this.#send(email);
      } catch (error) {
        this.#log.error({ err: error }, "an e-mail could not be sent");
      }
    }
    this.#workers--;
  }

  async #send(email: Email): Promise<void> {
    const { signal } = this.#closing;
    for (const delay of this.#retryDelaysMs) {
      try {
        return await this.#mailer.send(email);
      } catch (error) {
        this.#log.warn({ err: error }, "sending an e-mail failed; retrying");
        if (signal.aborted) throw error;
        await sleep(delay, undefined, { signal }).catch(() => {});
      }
    }
    await this.#mailer.send(email);
  }
}
