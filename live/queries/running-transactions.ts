import { setTimeout as sleep } from "node:timers/promises";
import type { AsOwner } from "#postgres/database";
import { isTransactionVisible, toLogXid } from "../transaction-visibility.ts";

const POLL_MS = 100;
/** A transaction that runs for longer is in the stream after its commit, like any other. */
const MAX_WAIT_MS = 30_000;
const READ_SNAPSHOT = "select pg_catalog.pg_current_snapshot()::pg_catalog.text as snapshot";

type Waiting = {
  readonly xids: ReadonlySet<number>;
  readonly onEnded: (ended: ReadonlySet<number>) => void;
  readonly until: number;
};

/** Tells when transactions that a snapshot did not have have ended: one query at a time for all who wait. */
export class RunningTransactions {
  readonly #asOwner: AsOwner;
  #waiting: Waiting[] = [];
  #isPolling = false;

  constructor(asOwner: AsOwner) {
    this.#asOwner = asOwner;
  }

  /** The transactions that run now. */
  async read(): Promise<ReadonlySet<number>> {
    const [, , running = ""] = (await this.#readSnapshot()).split(":");
    const texts = running === "" ? [] : running.split(",");
    return new Set(texts.map(toLogXid));
  }

  /** Calls back with those that have ended, each once. */
  whenEnded(xids: ReadonlySet<number>, onEnded: Waiting["onEnded"]): void {
    if (xids.size === 0) return;
    this.#waiting.push({ xids, onEnded, until: performance.now() + MAX_WAIT_MS });
    if (!this.#isPolling) void this.#poll();
  }

  async #poll(): Promise<void> {
    this.#isPolling = true;
    while (this.#waiting.length > 0) {
      await sleep(POLL_MS, undefined, { ref: false });
      const snapshot = await this.#readSnapshot().catch(() => null);
      if (snapshot !== null) this.#waiting = this.#waiting.flatMap((each) => remaining(each, snapshot));
    }
    this.#isPolling = false;
  }

  async #readSnapshot(): Promise<string> {
    const { rows } = await this.#asOwner((client) => client.query<{ snapshot: string }>(READ_SNAPSHOT));
    return rows[0]!.snapshot;
  }
}

function remaining(waiting: Waiting, snapshot: string): Waiting[] {
  const { xids, onEnded, until } = waiting;
  const running = new Set([...xids].filter((xid) => !isTransactionVisible(xid, snapshot)));
  if (running.size < xids.size) onEnded(xids.difference(running));
  return running.size === 0 || performance.now() > until ? [] : [{ ...waiting, xids: running }];
}
