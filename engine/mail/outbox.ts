import { setTimeout as sleep } from "node:timers/promises";
import type { Logger } from "../log.ts";
import type { Mailer, Message } from "./mailer.ts";

/** What there is to send; null when there is nothing. */
export type Write = () => Promise<Message | null>;

/** Sends afterwards: who asks for a mail is answered before it is looked whether there is one to be sent. */
export type Outbox = {
  put(write: Write): void;
  /** Takes nothing more, and resolves when all is sent that was put here. */
  close(): Promise<void>;
};

type Options = {
  readonly mailer: Mailer;
  readonly log: Pick<Logger, "warn" | "error">;
  /** How long it waits before each further attempt. */
  readonly pauses?: readonly number[];
  readonly most?: number;
};

/** A mail is worth a minute: it can be asked for again. */
const PAUSES = [1_000, 10_000];
const AT_ONCE = 2;
/** Whoever floods us with requests for mails fills no memory. */
const MOST = 1_000;

export function openOutbox({ mailer, log, pauses = PAUSES, most = MOST }: Options): Outbox {
  const waiting: Write[] = [];
  const underway = new Set<Promise<void>>();
  let workers = 0;
  const closing = new AbortController();

  const send = async (message: Message): Promise<void> => {
    for (const pause of pauses) {
      try {
        return await mailer.send(message);
      } catch (error) {
        log.warn({ err: error }, "a mail could not be sent yet");
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
        log.error({ err: error }, "a mail was not sent");
      }
    }
    workers--;
  };

  return {
    put(write) {
      if (closing.signal.aborted) return;
      if (waiting.length >= most) {
        log.warn({ waiting: most }, "too many mails are asked for; this one is not sent");
        return;
      }
      waiting.push(write);
      if (workers >= AT_ONCE) return;
      const worker = work().finally(() => underway.delete(worker));
      underway.add(worker);
    },
    async close() {
      closing.abort();
      await Promise.all(underway);
      mailer.close();
    },
  };
}
