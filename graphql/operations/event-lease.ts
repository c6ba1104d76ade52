import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import type { AsOwner } from "#postgres/database";
import type { WorkReport } from "#runtime/concurrency";
import type { Logger } from "#runtime/log";

/** `wasAwaited`: events were emitted until now. `at`: Postgres's time. `writers`: transactions that may have checked the lease before. */
export type LeaseRenewal = { readonly wasAwaited: boolean; readonly at: number; readonly writers: readonly string[] };

export type LeaseQueries = {
  /** Has triggers emit events for so many seconds. Null when they always do. */
  awaitEvents(seconds: number): Promise<LeaseRenewal | null>;
  /** The transactions among these that still run. */
  stillWriting(writers: readonly string[]): Promise<readonly string[]>;
};

export type EventLeaseOptions = {
  readonly queries: LeaseQueries;
  /** Called when the lease may have lapsed: the event numbers tell if any events were not emitted. */
  readonly onDoubt: () => void;
  /** Called when changes may have been committed without an event and so without a number. */
  readonly onMissed: () => void;
  readonly report: WorkReport;
  readonly renewMs?: number;
  readonly maxWaitMs?: number;
};

const LEASE_SECONDS = 60;
const RENEW_MS = 20_000;
const RETRY_MS = 2_000;
/** After this time without renewal, by Postgres's clock, the lease may have lapsed. */
const DOUBT_SECONDS = 50;
const POLL_MS = 5;
/** How long a subscription waits for transactions that wrote before it began. */
const MAX_WAIT_MS = 500;

/** Has Postgres emit events only while this process has subscribers, since commits with events serialize. */
export class EventLease {
  readonly #options: Required<EventLeaseOptions>;
  #holders = 0;
  /** Resolves when the current holders' lease is in effect. */
  #started: Promise<void> | null = null;
  /** The time of the last renewal, in seconds by Postgres's clock. */
  #renewedAt = Number.NEGATIVE_INFINITY;
  #timer: NodeJS.Timeout | undefined;

  constructor(options: EventLeaseOptions) {
    this.#options = { renewMs: RENEW_MS, maxWaitMs: MAX_WAIT_MS, ...options };
  }

  /** Starts the lease if there is none. Once this resolves, every commit emits its events, or onMissed or onDoubt is called. */
  async hold(): Promise<void> {
    this.#holders++;
    this.#started ??= this.#start();
    try {
      await this.#started;
    } catch (error) {
      this.release();
      throw error;
    }
  }

  /** Call once per hold(). */
  release(): void {
    this.#holders--;
    if (this.#holders > 0) return;
    // If there are no holders, the lease is not renewed, so no renewal can fail.
    this.#options.report.runs();
    this.#started = null;
    clearTimeout(this.#timer);
  }

  /** Call before counting events: changes without an event are not numbered either. */
  async renew(): Promise<void> {
    if (this.#started) await this.#renew();
  }

  async #start(): Promise<void> {
    this.#renewedAt = Number.NEGATIVE_INFINITY;
    await this.#renew();
    if (this.#started) this.#renewAfter(this.#options.renewMs);
  }

  #renewAfter(milliseconds: number): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#renewOrRetry(), milliseconds).unref();
  }

  async #renewOrRetry(): Promise<void> {
    const started = this.#started;
    try {
      const isSure = await this.#options.report.watch(() => this.#renew());
      if (!isSure) this.#options.onDoubt();
      if (started === this.#started) this.#renewAfter(this.#options.renewMs);
    } catch {
      if (started === this.#started) this.#renewAfter(RETRY_MS);
    }
  }

  /** Resolves to true if the lease certainly had not lapsed. */
  async #renew(): Promise<boolean> {
    const renewal = await this.#options.queries.awaitEvents(LEASE_SECONDS);
    if (!renewal) return true;
    const { wasAwaited, at, writers } = renewal;
    const isSure = wasAwaited && at - this.#renewedAt < DOUBT_SECONDS;
    this.#renewedAt = at;
    if (!isSure) await this.#waitForWriters(writers);
    return isSure;
  }

  /** Transactions that checked before the renewal emit no events when they commit. */
  async #waitForWriters(writers: readonly string[]): Promise<void> {
    const { onMissed, maxWaitMs } = this.#options;
    const over = this.#untilWritersEnd(writers).then(() => true);
    const isOver = await Promise.race([over, sleep(maxWaitMs, false, { ref: false })]);
    if (!isOver) over.then(onMissed, onMissed);
  }

  async #untilWritersEnd(writers: readonly string[]): Promise<void> {
    const { queries, maxWaitMs } = this.#options;
    let rest = writers;
    for (let pause = POLL_MS; rest.length > 0; pause = Math.min(2 * pause, maxWaitMs)) {
      await sleep(pause, undefined, { ref: false });
      rest = await queries.stillWriting(rest);
    }
  }
}

const RENEW_LEASE = 'select was_awaited as "wasAwaited", at, writers from content_service.await_events($1)';
const READ_STILL_WRITING = `
  select array(
    select virtualtransaction from pg_catalog.pg_locks
    where locktype = 'relation' and relation = 'content_service.events_awaited_until'::pg_catalog.regclass
      and database = (select oid from pg_catalog.pg_database where datname = pg_catalog.current_database())
      and virtualtransaction = any ($1)
  ) as writers`;

/** SQLSTATEs of a missing schema or function: triggers there always emit events. */
const NO_LEASE_SQLSTATES: readonly (string | undefined)[] = ["3F000", "42883"];
const INSUFFICIENT_PRIVILEGE = "42501";

type LeaseDependencies = { readonly asOwner: AsOwner; readonly log: Pick<Logger, "warn"> };

export function makeLeaseQueries({ asOwner, log }: LeaseDependencies): LeaseQueries {
  let isNeeded = true;

  const withoutLease = (error: unknown): null => {
    const code = error instanceof pg.DatabaseError ? error.code : undefined;
    if (code === INSUFFICIENT_PRIVILEGE)
      log.warn("subscriptions receive no events: the login role may not execute content_service.await_events");
    else if (!NO_LEASE_SQLSTATES.includes(code)) throw error;
    isNeeded = false;
    return null;
  };

  return {
    awaitEvents: async (seconds) => {
      if (!isNeeded) return null;
      const renewal = asOwner((client) => client.query<LeaseRenewal>(RENEW_LEASE, [seconds]));
      return renewal.then(({ rows }) => rows[0]!, withoutLease);
    },
    stillWriting: (writers) =>
      asOwner(async (client) => (await client.query<LeaseRenewal>(READ_STILL_WRITING, [writers])).rows[0]!.writers),
  };
}
