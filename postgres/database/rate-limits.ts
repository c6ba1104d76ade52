import type { QueryConfig } from "pg";
import { RateLimiterMemory, RateLimiterPostgres, RateLimiterRes } from "rate-limiter-flexible";
import { NO_PEERS, type PeerWorkers, Supervisor, type WorkReport } from "#runtime/concurrency";
import type { Logger } from "#runtime/log";
import { type AsOwner, makeOwnerFunction } from "./owner-pool.ts";

/** A caller's rate limit after a request. */
export type RateLimitStatus = {
  readonly isAdmitted: boolean;
  readonly limit: number;
  readonly remaining: number;
  /** The end of the window, in milliseconds since 1970. */
  readonly endsAt: number;
};

export type RequestLimitOptions = {
  /** The number of requests that one caller may send per window. */
  readonly limit: number;
  readonly asOwner: AsOwner;
  readonly log: Pick<Logger, "warn">;
  readonly supervisor?: Supervisor;
  readonly windowSeconds?: number;
  readonly peers?: PeerWorkers;
};

/** The requests of one caller in the current window: those counted here and those that other gateways have reported. */
type CountingWindow = { points: number; endsAt: number; unreported: number };
type PeerCounts = readonly (readonly [caller: string, points: number])[];
type TotalCount = { readonly key: string; readonly points: number; readonly milliseconds: number };

const WINDOW_SECONDS = 60;
const SYNC_INTERVAL_MS = 1_000;
/** The fraction of the limit from which a caller is reported before the next interval. */
const EARLY_REPORT_FRACTION = 1 / 20;

const COUNT_REQUESTS = "select key, points, milliseconds from content_service.count_requests($1, $2, $3)";

/**
 * Counts in memory and synchronizes with Postgres in the background: one statement per second reports the counts of all
 * callers and returns the totals over all gateways. Together the gateways can exceed the limit by what each has admitted
 * since its last report: a twentieth of the limit, plus the requests that arrive during one statement. Where Postgres
 * cannot count, the workers of one service report to each other.
 */
export class RequestLimit {
  readonly #limit: number;
  readonly #windowSeconds: number;
  readonly #countRequests: (values: readonly unknown[]) => Promise<readonly TotalCount[]>;
  readonly #windows = new Map<string, CountingWindow>();
  /** Callers with requests that were not yet reported to Postgres. */
  readonly #unreportedCallers = new Set<string>();
  readonly #peers: PeerWorkers;
  readonly #sharing: WorkReport;
  #timer: NodeJS.Timeout | undefined;
  #isSyncing = false;
  /** False if the database lacks the function that counts requests. */
  #isShared = true;

  constructor(options: RequestLimitOptions) {
    const { limit, asOwner, log, windowSeconds = WINDOW_SECONDS, peers = NO_PEERS } = options;
    const supervisor = options.supervisor ?? new Supervisor({ log: { ...log, info() {} } });
    this.#sharing = supervisor.report("shared request counts");
    this.#limit = limit;
    this.#peers = peers;
    peers.subscribe("requests", (counts) => this.#addOfPeer(counts as PeerCounts));
    this.#windowSeconds = windowSeconds;
    this.#countRequests = makeOwnerFunction<TotalCount>({
      asOwner,
      text: COUNT_REQUESTS,
      log,
      warning:
        "requests are counted per gateway: counting over all gateways needs the owner's connection (OWNER_DATABASE_URL)",
    });
  }

  count(caller: string, points = 1): RateLimitStatus {
    const limit = this.#limit;
    const window = this.#windowOf(caller);
    const isAdmitted = window.points + points <= limit;
    if (isAdmitted) {
      window.points += points;
      this.#report(caller, window, points);
    }
    return { isAdmitted, limit, remaining: Math.max(0, limit - window.points), endsAt: window.endsAt };
  }

  /** Stops synchronizing with the other gateways. */
  close(): void {
    this.#isShared = false;
    clearTimeout(this.#timer);
    this.#sharing.close();
  }

  #report(caller: string, window: CountingWindow, points: number): void {
    if (window.unreported === 0) this.#unreportedCallers.add(caller);
    window.unreported += points;
    if (!this.#isSyncing && window.unreported >= this.#limit * EARLY_REPORT_FRACTION) void this.#sync();
    else this.#scheduleSync();
  }

  #windowOf(caller: string): CountingWindow {
    const now = Date.now();
    const existing = this.#windows.get(caller);
    return existing && this.#isOpen(existing, now) ? existing : this.#openWindow(caller, now);
  }

  #openWindow(caller: string, now: number): CountingWindow {
    const window = { points: 0, endsAt: now + this.#windowSeconds * 1000, unreported: 0 };
    this.#windows.delete(caller);
    this.#windows.set(caller, window);
    this.#unreportedCallers.delete(caller);
    return window;
  }

  /** True if the window is open. The upper bound closes windows that would last too long because the clock was set back. */
  #isOpen({ endsAt }: CountingWindow, now: number): boolean {
    return endsAt > now && endsAt - now < 2 * this.#windowSeconds * 1000;
  }

  #scheduleSync(): void {
    this.#timer ??= setTimeout(() => void this.#sync(), SYNC_INTERVAL_MS).unref();
  }

  async #sync(): Promise<void> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#isSyncing = true;
    const reported = this.#takeUnreported();
    if (reported.size > 0 && !(await this.#reportToPostgres(reported))) {
      void this.#peers.publish("requests", [...reported] satisfies PeerCounts);
    }
    this.#isSyncing = false;
    this.#removeEnded();
    if (this.#windows.size > 0) this.#scheduleSync();
  }

  /** Returns false if Postgres is unavailable or does not count. */
  async #reportToPostgres(reported: ReadonlyMap<string, number>): Promise<boolean> {
    if (!this.#isShared) return false;
    try {
      const values = [[...reported.keys()], [...reported.values()], this.#windowSeconds];
      this.#applyTotals(await this.#sharing.watch(() => this.#countRequests(values)));
      return this.#isShared;
    } catch {
      return false;
    }
  }

  #addOfPeer(counts: PeerCounts): void {
    for (const [caller, points] of counts) this.#windowOf(caller).points += points;
    this.#scheduleSync();
  }

  #takeUnreported(): ReadonlyMap<string, number> {
    const counts = new Map<string, number>();
    for (const caller of this.#unreportedCallers) {
      const window = this.#windows.get(caller)!;
      counts.set(caller, window.unreported);
      window.unreported = 0;
    }
    this.#unreportedCallers.clear();
    return counts;
  }

  #applyTotals(counts: readonly TotalCount[]): void {
    this.#isShared &&= counts.length > 0;
    for (const { key, points, milliseconds } of counts) {
      const window = this.#windows.get(key);
      if (!window) continue;
      window.points = points + window.unreported;
      window.endsAt = Date.now() + milliseconds;
    }
  }

  /** Removes ended windows, in order of creation. If another gateway opened a window earlier, it ends early but stays until older ones end. */
  #removeEnded(): void {
    const now = Date.now();
    for (const [caller, window] of this.#windows) {
      if (this.#isOpen(window, now)) return;
      if (!this.#unreportedCallers.has(caller)) this.#windows.delete(caller);
    }
  }
}

export type SharedRateLimit = {
  /** Counts one or more requests of the key. Null if they are within the limit, otherwise the seconds until the next one is allowed. */
  take(key: string, count?: number): Promise<number | null>;
};

type SharedRateLimitOptions = {
  readonly name: string;
  readonly points: number;
  readonly seconds: number;
  readonly asOwner: AsOwner;
};

/**
 * A rate limit for rare, expensive requests: each one is counted in Postgres, so that the count is exact over all gateways.
 * While Postgres is unavailable, or has no table for the counts, each gateway counts by itself.
 */
export function makeSharedRateLimit({ name, points, seconds, asOwner }: SharedRateLimitOptions): SharedRateLimit {
  const limits = { keyPrefix: name, points, duration: seconds };
  const limiter = new RateLimiterPostgres({
    ...limits,
    // Omits the name, under which the statement would stay prepared: a router between the owner and Postgres may not support that.
    storeClient: { query: ({ text, values }: QueryConfig) => asOwner((client) => client.query(text, values)) },
    storeType: "client",
    schemaName: "content_service",
    tableName: "rate_limits",
    tableCreated: true,
    // Expired rows are deleted with those of all other tables.
    clearExpiredByTimeout: false,
    insuranceLimiter: new RateLimiterMemory(limits),
  });
  return {
    async take(key, count = 1) {
      try {
        await limiter.consume(key, count);
        return null;
      } catch (thrown) {
        if (thrown instanceof RateLimiterRes) return Math.ceil(thrown.msBeforeNext / 1000);
        throw thrown;
      }
    },
  };
}
