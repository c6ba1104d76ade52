import { type AsOwner, makeOwnerFunction } from "../database/owner-pool.ts";
import type { Logger } from "../output/log.ts";

/** A caller's rate limit after a request. */
export type RateLimitStatus = {
  readonly isAdmitted: boolean;
  readonly limit: number;
  readonly remaining: number;
  /** When the window ends, in milliseconds since 1970. */
  readonly endsAt: number;
};

export type RequestLimit = {
  count(caller: string): RateLimitStatus;
  /** Stops synchronizing with the other gateways. */
  close(): void;
};

type RequestLimitOptions = {
  /** Requests that one caller may send per window. */
  readonly limit: number;
  readonly asOwner: AsOwner;
  readonly log: Pick<Logger, "warn">;
  readonly windowSeconds?: number;
};

/** The requests of one caller in the current window: those counted here and those that other gateways have reported. */
type CountingWindow = { points: number; endsAt: number; unreported: number };
type TotalCount = { readonly key: string; readonly points: number; readonly milliseconds: number };

const WINDOW_SECONDS = 60;
const SYNC_INTERVAL_MS = 1_000;
/** A caller who uses this fraction of the limit here is reported before the next interval. */
const EARLY_REPORT_FRACTION = 1 / 20;

const COUNT_REQUESTS = "select key, points, milliseconds from private.count_requests($1, $2, $3)";

/**
 * Counts in memory and synchronizes with Postgres in the background: one statement per second reports the counts of all
 * callers and returns the totals over all gateways. Together the gateways can exceed the limit by what each has admitted
 * since its last report: a twentieth of the limit, plus the requests that arrive during one statement.
 */
export function makeRequestLimit({
  limit,
  asOwner,
  log,
  windowSeconds = WINDOW_SECONDS,
}: RequestLimitOptions): RequestLimit {
  const queryAsOwner = makeOwnerFunction<TotalCount>({
    asOwner,
    text: COUNT_REQUESTS,
    log,
    warning:
      "requests are counted per gateway: counting over all gateways needs the owner's connection (OWNER_DATABASE_URL)",
  });
  const windows = new Map<string, CountingWindow>();
  /** Callers with requests that were not yet reported to Postgres. */
  const unreportedCallers = new Set<string>();
  let timer: NodeJS.Timeout | undefined;
  let isSyncing = false;
  /** False for a database without the function that counts requests. */
  let isShared = true;

  const sync = async (): Promise<void> => {
    clearTimeout(timer);
    timer = undefined;
    isSyncing = true;
    const reported = takeUnreported();
    try {
      if (isShared && reported.size > 0)
        applyTotals(await queryAsOwner([[...reported.keys()], [...reported.values()], windowSeconds]));
    } catch {
      // While Postgres is unavailable, each gateway counts by itself.
    } finally {
      isSyncing = false;
      removeEnded();
      if (windows.size > 0) scheduleSync();
    }
  };

  const scheduleSync = (): void => {
    timer ??= setTimeout(sync, SYNC_INTERVAL_MS).unref();
  };

  const takeUnreported = (): ReadonlyMap<string, number> => {
    const counts = new Map<string, number>();
    for (const caller of unreportedCallers) {
      const window = windows.get(caller)!;
      counts.set(caller, window.unreported);
      window.unreported = 0;
    }
    unreportedCallers.clear();
    return counts;
  };

  const applyTotals = (counts: readonly TotalCount[]): void => {
    isShared &&= counts.length > 0;
    for (const { key, points, milliseconds } of counts) {
      const window = windows.get(key);
      if (!window) continue;
      window.points = points + window.unreported;
      window.endsAt = Date.now() + milliseconds;
    }
  };

  /** The upper bound closes windows that would last too long because the clock was set back. */
  const isOpen = ({ endsAt }: CountingWindow, now: number): boolean =>
    endsAt > now && endsAt - now < 2 * windowSeconds * 1000;

  /** Windows are in the order of their creation. One that ended early, because another gateway opened it earlier, stays until the older ones have ended. */
  const removeEnded = (): void => {
    const now = Date.now();
    for (const [caller, window] of windows) {
      if (isOpen(window, now)) return;
      if (!unreportedCallers.has(caller)) windows.delete(caller);
    }
  };

  const openWindow = (caller: string, now: number): CountingWindow => {
    const window = { points: 0, endsAt: now + windowSeconds * 1000, unreported: 0 };
    windows.delete(caller);
    windows.set(caller, window);
    unreportedCallers.delete(caller);
    return window;
  };

  const report = (caller: string, window: CountingWindow): void => {
    if (window.unreported++ === 0) unreportedCallers.add(caller);
    if (!isSyncing && window.unreported >= limit * EARLY_REPORT_FRACTION) void sync();
    else scheduleSync();
  };

  return {
    count(caller) {
      const now = Date.now();
      const existing = windows.get(caller);
      const window = existing && isOpen(existing, now) ? existing : openWindow(caller, now);
      const isAdmitted = window.points < limit;
      if (isAdmitted) {
        window.points++;
        report(caller, window);
      }
      return { isAdmitted, limit, remaining: Math.max(0, limit - window.points), endsAt: window.endsAt };
    },
    close() {
      isShared = false;
      clearTimeout(timer);
    },
  };
}
