import { setTimeout as sleep } from "node:timers/promises";
import type { AsOwner } from "#postgres/database";
import { batchLookups } from "#runtime/concurrency";
import { invisibleIn, toLogXid } from "../stream/transaction-visibility.ts";

const MIN_PAUSE_MS = 100;
const MAX_PAUSE_MS = 5_000;
/** The pause between two polls grows with the time since the last call. */
const PAUSE_SHARE = 1 / 10;

// The snapshot lists no transactions that are newer than the last one that ended. Each transaction holds a lock on its number until new
// snapshots include it.
const READ_RUNNING = `select pg_catalog.pg_current_snapshot()::pg_catalog.text as snapshot, array(
  select l.transactionid::pg_catalog.text from pg_catalog.pg_locks l where l.locktype = 'transactionid' and l.granted
) as locked`;
const READ_SNAPSHOT = "select pg_catalog.pg_current_snapshot()::pg_catalog.text as snapshot";

type ReadTransactions = { readonly snapshot: string; readonly running: ReadonlySet<number> };

type EndCallback = {
  /** Called once for each transaction. */
  onEnded(ended: ReadonlySet<number>): void;
  isNeeded?(): boolean;
};

type PendingCallback = EndCallback & { readonly xids: ReadonlySet<number> };

/** Reports when transactions end that a snapshot did not include. One query serves all callers. */
export class RunningTransactions {
  readonly #asOwner: AsOwner;
  readonly #readTogether = batchLookups(() => this.#read());
  #pending: PendingCallback[] = [];
  #calledAt = 0;
  #isPolling = false;

  constructor(asOwner: AsOwner) {
    this.#asOwner = asOwner;
  }

  /** Reads a snapshot and the running transactions, including those that wait for a synchronous standby. */
  read(): Promise<ReadTransactions> {
    return this.#readTogether("");
  }

  whenEnded(xids: ReadonlySet<number>, callback: EndCallback): void {
    if (xids.size === 0) return;
    this.#pending.push({ ...callback, xids });
    this.#calledAt = performance.now();
    if (!this.#isPolling) void this.#poll();
  }

  async #read(): Promise<ReadTransactions> {
    const { rows } = await this.#asOwner((client) =>
      client.query<{ snapshot: string; locked: string[] }>(READ_RUNNING),
    );
    const { snapshot, locked } = rows[0]!;
    return { snapshot, running: invisibleIn(snapshot, locked.map(toLogXid)) };
  }

  async #poll(): Promise<void> {
    this.#isPolling = true;
    while (this.#pending.length > 0) {
      const pause = (performance.now() - this.#calledAt) * PAUSE_SHARE;
      await sleep(Math.min(MAX_PAUSE_MS, Math.max(MIN_PAUSE_MS, pause)), undefined, { ref: false });
      const snapshot = await this.#readSnapshot().catch(() => null);
      if (snapshot !== null) this.#pending = this.#pending.flatMap((each) => remaining(each, snapshot));
    }
    this.#isPolling = false;
  }

  async #readSnapshot(): Promise<string> {
    const { rows } = await this.#asOwner((client) => client.query<{ snapshot: string }>(READ_SNAPSHOT));
    return rows[0]!.snapshot;
  }
}

function remaining(pending: PendingCallback, snapshot: string): PendingCallback[] {
  if (pending.isNeeded?.() === false) return [];
  const running = invisibleIn(snapshot, pending.xids);
  if (running.size < pending.xids.size) pending.onEnded(pending.xids.difference(running));
  return running.size === 0 ? [] : [{ ...pending, xids: running }];
}
