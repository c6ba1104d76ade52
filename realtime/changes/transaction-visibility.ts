import { setTimeout as sleep } from "node:timers/promises";
import type { AsOwner } from "../../engine/database/owner-pool.ts";

/** Resolves when new snapshots include these transactions. */
export type AwaitVisible = (xids: ReadonlySet<number>) => Promise<void>;

const MIN_PAUSE_MS = 1;
const MAX_PAUSE_MS = 200;
/** A transaction that is still invisible then waits for a synchronous standby that is away; subscribers cannot read its rows yet. */
const MAX_WAIT_MS = 30_000;
const HALF_XID_RANGE = 2 ** 31;

/**
 * A commit is in the log a moment before it is visible, and long before where it waits for a synchronous standby. A client that receives a
 * change may read the row at once.
 */
export function makeAwaitVisible(asOwner: AsOwner): AwaitVisible {
  const read = async (): Promise<string> => {
    const { rows } = await asOwner((client) =>
      client.query<{ snapshot: string }>("select pg_current_snapshot()::text as snapshot"),
    );
    return rows[0]!.snapshot;
  };
  return async (xids) => {
    const end = performance.now() + MAX_WAIT_MS;
    for (let pause = MIN_PAUSE_MS; performance.now() < end; pause = Math.min(2 * pause, MAX_PAUSE_MS)) {
      const snapshot = await read().catch(() => null);
      if (snapshot !== null && [...xids].every((xid) => isTransactionVisible(xid, snapshot))) return;
      await sleep(pause);
    }
  };
}

/** `3201:3208:3203,3205`: transactions below the second number are complete, except those listed. */
export function isTransactionVisible(xid: number, snapshot: string): boolean {
  const [, next = "", running = ""] = snapshot.split(":");
  // The log has 32-bit numbers, which wrap around.
  const low = (text: string) => Number(BigInt.asUintN(32, BigInt(text)));
  if (running !== "" && running.split(",").some((text) => low(text) === xid)) return false;
  const distance = (low(next) - xid) >>> 0;
  return distance > 0 && distance < HALF_XID_RANGE;
}
