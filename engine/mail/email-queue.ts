import { setTimeout as sleep } from "node:timers/promises";
import type { Logger } from "../output/log.ts";
import type { Email, Mailer } from "./mailer.ts";

/** Creates the e-mail when its turn comes; null when there is nothing to send. */
export type PrepareEmail = () => Promise<Email | null>;

/** Sends e-mails in the background, so that the response time does not show whether there was one to send. */
export type EmailQueue = {
  add(write: PrepareEmail): void;
  /** Accepts no more e-mails and resolves when the queue is empty. */
  close(): Promise<void>;
};

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

export function makeEmailQueue({
  mailer,
  log,
  retryDelaysMs: delays = RETRY_DELAYS_MS,
  maxWaiting: maxQueued = MAX_WAITING,
}: EmailQueueOptions): EmailQueue {
  const waiting: PrepareEmail[] = [];
  const running = new Set<Promise<void>>();
  let workers = 0;
  const closing = new AbortController();

  const send = async (email: Email): Promise<void> => {
    for (const delay of delays) {
      try {
        return await mailer.send(email);
      } catch (error) {
        log.warn({ err: error }, "sending an e-mail failed; retrying");
        if (closing.signal.aborted) throw error;
        await sleep(delay, undefined, { signal: closing.signal }).catch(() => {});
      }
    }
    await mailer.send(email);
  };

  const runWorker = async (): Promise<void> => {
    workers++;
    for (let prepare = waiting.shift(); prepare; prepare = waiting.shift()) {
      try {
        const email = await prepare();
        if (email) await send(email);
      } catch (error) {
        log.error({ err: error }, "an e-mail could not be sent");
      }
    }
    workers--;
  };

  return {
    add(prepare) {
      if (closing.signal.aborted) return;
      if (waiting.length >= maxQueued) {
        log.warn({ waiting: maxQueued }, "the e-mail queue is full; an e-mail was dropped");
        return;
      }
      waiting.push(prepare);
      if (workers >= CONCURRENCY) return;
      const worker = runWorker().finally(() => running.delete(worker));
      running.add(worker);
    },
    async close() {
      closing.abort();
      await Promise.all(running);
      mailer.close();
    },
  };
}
