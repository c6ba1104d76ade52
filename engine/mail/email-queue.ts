import { setTimeout as sleep } from "node:timers/promises";
import type { Logger } from "../log.ts";
import type { Email, Mailer } from "./mailer.ts";

/** Creates the e-mail when its turn comes; null when there is nothing to send. */
export type PrepareEmail = () => Promise<Email | null>;

/** Sends e-mails in the background, so that the response time does not show whether there was one to send. */
export type EmailQueue = {
  add(write: PrepareEmail): void;
  /** Accepts no more e-mails and resolves when the queue is empty. */
  close(): Promise<void>;
};

type Options = {
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
  retryDelaysMs: pauses = RETRY_DELAYS_MS,
  maxWaiting: most = MAX_WAITING,
}: Options): EmailQueue {
  const waiting: PrepareEmail[] = [];
  const running = new Set<Promise<void>>();
  let workers = 0;
  const closing = new AbortController();

  const send = async (message: Email): Promise<void> => {
    for (const pause of pauses) {
      try {
        return await mailer.send(message);
      } catch (error) {
        log.warn({ err: error }, "sending an e-mail failed; retrying");
        if (closing.signal.aborted) throw error;
        await sleep(pause, undefined, { signal: closing.signal }).catch(() => {});
      }
    }
    await mailer.send(message);
  };

  const work = async (): Promise<void> => {
    workers++;
    for (let write = waiting.shift(); write; write = waiting.shift()) {
      try {
        const message = await write();
        if (message) await send(message);
      } catch (error) {
        log.error({ err: error }, "an e-mail could not be sent");
      }
    }
    workers--;
  };

  return {
    add(write) {
      if (closing.signal.aborted) return;
      if (waiting.length >= most) {
        log.warn({ waiting: most }, "the e-mail queue is full; an e-mail was dropped");
        return;
      }
      waiting.push(write);
      if (workers >= CONCURRENCY) return;
      const worker = work().finally(() => running.delete(worker));
      running.add(worker);
    },
    async close() {
      closing.abort();
      await Promise.all(running);
      mailer.close();
    },
  };
}
