import { setTimeout as sleep } from "node:timers/promises";
import { type AsOwner, CURRENT_TIMELINE, type PrimarySnapshot } from "#postgres/database";

/** Resolves when new snapshots include these transactions, or after a long time. */
export type AwaitVisible = (xids: ReadonlySet<number>) => Promise<unknown>;
/** Resolves with the transactions that are still not included. */
type FindInvisible = (xids: ReadonlySet<number>) => Promise<ReadonlySet<number>>;

/** The timeout of an answer: a connection to a server that has vanished gives none. */
const ANSWER_TIMEOUT_MS = 5_000;
const MIN_PAUSE_MS = 1;
const MAX_PAUSE_MS = 200;
/** A transaction that is still invisible then waits for a synchronous standby that is away; subscribers cannot read its rows yet. */
const MAX_WAIT_MS = 30_000;
/** While the database does not answer, such as during a failover, that time does not pass. */
const MAX_OUTAGE_MS = 10 * 60_000;
/** The number of transactions after which they are looked for in a snapshot, even if no result is affected. */
const MAX_DECIDED_XIDS = 1_000;
const HALF_XID_RANGE = 2 ** 31;
const READ_SNAPSHOT = `select pg_catalog.pg_current_snapshot()::pg_catalog.text as snapshot, ${CURRENT_TIMELINE} as timeline`;

/**
 * A commit is in the log a moment before it is visible, and long before where it waits for a synchronous standby. A client that receives a
 * change may read the row at once. A promoted standby may not have the transaction and give its number to another one, so its snapshot is
 * used only when the stream has changed to its timeline; until then `streamTimeline` is another one. Null if unknown.
 */
export function makeAwaitVisible(asOwner: AsOwner, streamTimeline: () => number | null): FindInvisible {
  const read = async (): Promise<PrimarySnapshot | null> => {
    const { rows } = await asOwner((client) => client.query<PrimarySnapshot>(READ_SNAPSHOT));
    const { timeline } = rows[0]!;
    return timeline === (streamTimeline() ?? timeline) ? rows[0]! : null;
  };
  return async (xids) => {
    const end = performance.now() + MAX_OUTAGE_MS;
    let waitedMs = 0;
    let invisible = xids;
    if (xids.size === 0) return xids;
    for (let pause = MIN_PAUSE_MS; waitedMs < MAX_WAIT_MS; pause = Math.min(2 * pause, MAX_PAUSE_MS)) {
      const current = await nullWhenLate(read().catch(() => null));
      if (current) invisible = invisibleIn(current.snapshot, invisible);
      if (invisible.size === 0) break;
      if (current) waitedMs += pause;
      else if (performance.now() > end) break;
      await sleep(pause);
    }
    return invisible;
  };
}

async function nullWhenLate<Result>(answer: Promise<Result>): Promise<Result | null> {
  const late = Promise.withResolvers<null>();
  const timer = setTimeout(() => late.resolve(null), ANSWER_TIMEOUT_MS);
  return Promise.race([answer, late.promise]).finally(() => clearTimeout(timer));
}

/** The transactions among these that the snapshot does not include. */
export function invisibleIn(snapshot: string, xids: Iterable<number>): ReadonlySet<number> {
  return new Set([...xids].filter((xid) => !isTransactionVisible(xid, snapshot)));
}

/** `3201:3208:3203,3205`: transactions below the second number are complete, except those listed. */
export function isTransactionVisible(xid: number, snapshot: string): boolean {
  const [, next = "", running = ""] = snapshot.split(":");
  if (running !== "" && running.split(",").some((text) => toLogXid(text) === xid)) return false;
  const distance = (toLogXid(next) - xid) >>> 0;
  return distance > 0 && distance < HALF_XID_RANGE;
}

/** The number of a transaction in the log, where numbers have 32 bits and wrap around. */
export function toLogXid(xid: string): number {
  return Number(BigInt.asUintN(32, BigInt(xid)));
}

/**
 * Transactions for which the rows of results have decided which results are affected. The next run of such a result must include them: with
 * other transactions, which the run may include, they could affect it.
 */
export class DecidedTransactions {
  readonly #xids = new Set<number>();
  /** The last awaited transactions, for all runs. */
  #awaited: { readonly xids: ReadonlySet<number>; readonly invisible: Promise<ReadonlySet<number>> } | null = null;

  get areMany(): boolean {
    return this.#xids.size >= MAX_DECIDED_XIDS;
  }

  add(xid: number): void {
    this.#xids.add(xid);
  }

  /** Call when all results are opened again. On another timeline there may be no such transactions. */
  clear(): void {
    this.#xids.clear();
  }

  /** Resolves when new snapshots include these and the other transactions, with the transactions that are still missing after a long time. */
  async awaitVisible(
    findInvisible: FindInvisible,
    others: ReadonlySet<number> = new Set(),
  ): Promise<ReadonlySet<number>> {
    const xids = this.#xids.union(others);
    if (xids.size === 0) return xids;
    if (!this.#awaited || !xids.isSubsetOf(this.#awaited.xids))
      this.#awaited = { xids, invisible: findInvisible(xids) };
    const awaited = this.#awaited;
    const invisible = await awaited.invisible;
    if (this.#awaited === awaited) this.#awaited = null;
    for (const xid of awaited.xids) this.#xids.delete(xid);
    return invisible;
  }
}
