import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import type { AsOwner } from "../../engine/database/owner-pool.ts";
import type { Logger } from "../../engine/output/log.ts";

/** Whether events were told until now, when that was by Postgres's clock, and which transactions may have looked before. */
export type LeaseRenewal = { readonly wasAwaited: boolean; readonly at: number; readonly writers: readonly string[] };

export type LeaseQueries = {
  /** Has events told for so many seconds. Null where nobody has to ask for that. */
  awaitEvents(seconds: number): Promise<LeaseRenewal | null>;
  /** Those of these transactions that are not over. */
  stillWriting(writers: readonly string[]): Promise<readonly string[]>;
};

export type EventLeaseOptions = {
  readonly queries: LeaseQueries;
  /** Events may not have been told for a while: whether any were left out, their numbers say. */
  readonly onDoubt: () => void;
  /** There may have been events that have no number. */
  readonly onMissed: () => void;
  readonly renewMs?: number;
  readonly patienceMs?: number;
};

const LEASE_SECONDS = 60;
const RENEW_MS = 20_000;
const RETRY_MS = 2_000;
/** Whoever was away for so long, by Postgres's clock, may have been away for too long. */
const DOUBT_SECONDS = 50;
const POLL_MS = 5;
/** How long a subscription waits for transactions that have written before it began. */
const PATIENCE_MS = 500;

/** Has Postgres tell events while somebody here subscribes: a commit that tells nothing does not wait for others that do. */
export class EventLease {
  readonly #options: Required<EventLeaseOptions>;
  #holders = 0;
  /** Of those who hold it now. */
  started: Promise<void> | null = null;
  /** In seconds, by Postgres's clock. */
  #renewedAt = Number.NEGATIVE_INFINITY;
  #timer: NodeJS.Timeout | undefined;

  constructor(options: EventLeaseOptions) {
    this.#options = { renewMs: RENEW_MS, patienceMs: PATIENCE_MS, ...options };
  }

  /** Of what is committed after this resolves all is told, or else onMissed or onDoubt is called. */
  async hold(): Promise<void> {
    this.#holders++;
    this.started ??= this.start();
    try {
      await this.started;
    } catch (error) {
      this.release();
      throw error;
    }
  }

  /** To be called once for each hold(). */
  release(): void {
    this.#holders--;
    if (this.#holders > 0) return;
    this.started = null;
    clearTimeout(this.#timer);
  }

  /** To be called before events are counted: what is not told is not numbered either. */
  async renew(): Promise<void> {
    if (this.started) await this.#renew();
  }

  async start(): Promise<void> {
    this.#renewedAt = Number.NEGATIVE_INFINITY;
    await this.#renew();
    if (this.started) this.#renewAfter(this.#options.renewMs);
  }

  #renewAfter(milliseconds: number): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#renewOrRetry(), milliseconds).unref();
  }

  async #renewOrRetry(): Promise<void> {
    const started = this.started;
    try {
      const isSure = await this.#renew();
      if (!isSure) this.#options.onDoubt();
      if (started === this.started) this.#renewAfter(this.#options.renewMs);
    } catch {
      if (started === this.started) this.#renewAfter(RETRY_MS);
    }
  }

  /** Resolves with whether it is certain that it has not lapsed before. */
  async #renew(): Promise<boolean> {
    const renewal = await this.#options.queries.awaitEvents(LEASE_SECONDS);
    if (!renewal) return true;
    const { wasAwaited, at, writers } = renewal;
    const isSure = wasAwaited && at - this.#renewedAt < DOUBT_SECONDS;
    this.#renewedAt = at;
    if (!isSure) await this.waitForWriters(writers);
    return isSure;
  }

  /** What has looked before does not tell of what it commits afterwards. */
  async waitForWriters(writers: readonly string[]): Promise<void> {
    const { onMissed, patienceMs } = this.#options;
    const over = this.untilWritersEnd(writers).then(() => true);
    const isOver = await Promise.race([over, sleep(patienceMs, false, { ref: false })]);
    if (!isOver) over.then(onMissed, onMissed);
  }

  async untilWritersEnd(writers: readonly string[]): Promise<void> {
    const { queries, patienceMs } = this.#options;
    let rest = writers;
    for (let pause = POLL_MS; rest.length > 0; pause = Math.min(2 * pause, patienceMs)) {
      await sleep(pause, undefined, { ref: false });
      rest = await queries.stillWriting(rest);
    }
  }
}

const RENEW_LEASE = 'select was_awaited as "wasAwaited", at, writers from private.await_events($1)';
const READ_STILL_WRITING = `
  select array(
    select virtualtransaction from pg_locks
    where locktype = 'relation' and relation = 'private.events_awaited_until'::regclass
      and database = (select oid from pg_database where datname = current_database())
      and virtualtransaction = any ($1)
  ) as writers`;

/** Postgres has no such schema or function: whoever tells events there does it always. */
const NO_LEASE_SQLSTATES: readonly (string | undefined)[] = ["3F000", "42883"];
const INSUFFICIENT_PRIVILEGE = "42501";

type LeaseDependencies = { readonly asOwner: AsOwner; readonly log: Pick<Logger, "warn"> };

export function makeLeaseQueries({ asOwner, log }: LeaseDependencies): LeaseQueries {
  let isNeeded = true;

  const withoutLease = (error: unknown): null => {
    const code = error instanceof pg.DatabaseError ? error.code : undefined;
    if (code === INSUFFICIENT_PRIVILEGE)
      log.warn("subscriptions hear nothing: the login may not execute private.await_events");
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
