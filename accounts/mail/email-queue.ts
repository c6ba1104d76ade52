import { setTimeout as sleep } from "node:timers/promises";
import type { Supervisor, WorkReport } from "#runtime/concurrency";
import type { Logger } from "#runtime/log";
import type { Email } from "./mailer.ts";

/** Creates the message just before it is sent; null if there is nothing to send. */
type PrepareMessage<Message> = () => Promise<Message | null>;

type MessageQueueOptions<Message> = {
  readonly mailer: { send(message: Message): Promise<void>; close(): void };
  readonly log: Pick<Logger, "warn" | "error">;
  readonly supervisor?: Supervisor;
  /** The delay before each retry. */
  readonly retryDelaysMs?: readonly number[];
  readonly maxWaiting?: number;
  /** The noun for the message in the log. */
  readonly noun?: "e-mail" | "text message";
};

/** Retries end soon, because the user can request another e-mail. */
const RETRY_DELAYS_MS = [1_000, 10_000];
const CONCURRENCY = 2;
/** The limit bounds the memory that a flood of requests can use. */
const MAX_WAITING = 1_000;

/** Sends messages in the background, so that the response time does not show whether there was one to send. */
export class MessageQueue<Message> {
  readonly #mailer: MessageQueueOptions<Message>["mailer"];
  readonly #log: MessageQueueOptions<Message>["log"];
  readonly #report: WorkReport | undefined;
  readonly #noun: string;
  /** The noun as the subject of a sentence. */
  readonly #subject: string;
  readonly #retryDelaysMs: readonly number[];
  readonly #maxWaiting: number;
  readonly #waiting: PrepareMessage<Message>[] = [];
  readonly #running = new Set<Promise<void>>();
  readonly #closing = new AbortController();
  #workers = 0;

  constructor(options: MessageQueueOptions<Message>) {
    const { mailer, log, retryDelaysMs = RETRY_DELAYS_MS, maxWaiting = MAX_WAITING, noun = "e-mail" } = options;
    this.#mailer = mailer;
    this.#log = log;
    this.#report = options.supervisor?.report(`${noun}s`);
    this.#noun = noun;
    this.#subject = noun === "e-mail" ? "an e-mail" : "a text message";
    this.#retryDelaysMs = retryDelaysMs;
    this.#maxWaiting = maxWaiting;
  }

  add(prepare: PrepareMessage<Message>): void {
    if (this.#closing.signal.aborted) return;
    if (this.#waiting.length >= this.#maxWaiting) {
      this.#log.warn({ waiting: this.#maxWaiting }, `the ${this.#noun} queue is full; ${this.#subject} was dropped`);
      return;
    }
    this.#waiting.push(prepare);
    if (this.#workers >= CONCURRENCY) return;
    const worker = this.#runWorker().finally(() => this.#running.delete(worker));
    this.#running.add(worker);
  }

  /** Sends the message once, at once. Rejects if it is refused. */
  sendNow(message: Message): Promise<void> {
    return this.#attempt(message);
  }

  /** Accepts no more messages and resolves when the queue is empty. */
  async close(): Promise<void> {
    this.#closing.abort();
    await Promise.all(this.#running);
    this.#mailer.close();
    this.#report?.close();
  }

  async #runWorker(): Promise<void> {
    this.#workers++;
    for (let prepare = this.#waiting.shift(); prepare; prepare = this.#waiting.shift()) {
      try {
        const message = await prepare();
        if (message) await this.#send(message);
      } catch (error) {
        this.#log.error({ err: error }, `${this.#subject} could not be sent`);
      }
    }
    this.#workers--;
  }

  async #send(message: Message): Promise<void> {
    const { signal } = this.#closing;
    for (const delay of this.#retryDelaysMs) {
      try {
        return await this.#attempt(message);
      } catch (error) {
        this.#log.warn({ err: error }, `sending ${this.#subject} failed; retrying`);
        if (signal.aborted) throw error;
        await sleep(delay, undefined, { signal }).catch(() => {});
      }
    }
    await this.#attempt(message);
  }

  /** An uncaught error of the sending library counts as a failure. */
  #attempt(message: Message): Promise<void> {
    const send = () => this.#mailer.send(message);
    return this.#report?.guard(send) ?? send();
  }
}

export class EmailQueue extends MessageQueue<Email> {}
