import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import type { AsOwner } from "../../engine/database/as-owner.ts";
import type { Logger } from "../../engine/log.ts";

/** Whether events were told until now, when that was by Postgres's clock, and which transactions may have looked before. */
export type Awaited = { readonly wasAwaited: boolean; readonly at: number; readonly writers: readonly string[] };

export type LeaseQuestions = {
  /** Has events told for so many seconds. Null where nobody has to ask for that. */
  awaitEvents(seconds: number): Promise<Awaited | null>;
  /** Those of these transactions that are not over. */
  stillWriting(writers: readonly string[]): Promise<readonly string[]>;
};

export type EventLeaseOptions = {
  readonly ask: LeaseQuestions;
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
const LOOK_MS = 5;
/** How long a subscription waits for transactions that have written before it began. */
const PATIENCE_MS = 500;

/** Has Postgres tell events while somebody here subscribes: a commit that tells nothing does not wait for others that do. */
export class EventLease {
  readonly #options: Required<EventLeaseOptions>;
  #holders = 0;
  /** Of those who hold it now. */
  #begun: Promise<void> | null = null;
  /** In seconds, by Postgres's clock. */
  #renewedAt = Number.NEGATIVE_INFINITY;
  #timer: NodeJS.Timeout | undefined;

  constructor(options: EventLeaseOptions) {
    this.#options = { renewMs: RENEW_MS, patienceMs: PATIENCE_MS, ...options };
  }

  /** Of what is committed after this resolves all is told, or else onMissed or onDoubt is called. */
  async hold(): Promise<void> {
    this.#holders++;
    this.#begun ??= this.#begin();
    try {
      await this.#begun;
    } catch (error) {
      this.release();
      throw error;
    }
  }

  /** To be called once for each hold(). */
  release(): void {
    this.#holders--;
    if (this.#holders > 0) return;
    this.#begun = null;
    clearTimeout(this.#timer);
  }

  /** To be called before events are counted: what is not told is not numbered either. */
  async renew(): Promise<void> {
    if (this.#begun) await this.#renew();
  }

  async #begin(): Promise<void> {
    this.#renewedAt = Number.NEGATIVE_INFINITY;
    await this.#renew();
    if (this.#begun) this.#renewAfter(this.#options.renewMs);
  }

  #renewAfter(milliseconds: number): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#renewOrRetry(), milliseconds).unref();
  }

  async #renewOrRetry(): Promise<void> {
    const begun = this.#begun;
    try {
      const isSure = await this.#renew();
      if (!isSure) this.#options.onDoubt();
      if (begun === this.#begun) this.#renewAfter(this.#options.renewMs);
    } catch {
      if (begun === this.#begun) this.#renewAfter(RETRY_MS);
    }
  }

  /** Resolves with whether it is certain that it has not lapsed before. */
  async #renew(): Promise<boolean> {
    const awaited = await this.#options.ask.awaitEvents(LEASE_SECONDS);
    if (!awaited) return true;
    const { wasAwaited, at, writers } = awaited;
    const isSure = wasAwaited && at - this.#renewedAt < DOUBT_SECONDS;
    this.#renewedAt = at;
    if (!isSure) await this.#outlast(writers);
    return isSure;
  }

  /** What has looked before does not tell of what it commits afterwards. */
  async #outlast(writers: readonly string[]): Promise<void> {
    const { onMissed, patienceMs } = this.#options;
    const over = this.#overOf(writers).then(() => true);
    const isOver = await Promise.race([over, sleep(patienceMs, false, { ref: false })]);
    if (!isOver) over.then(onMissed, onMissed);
  }

  async #overOf(writers: readonly string[]): Promise<void> {
    const { ask, patienceMs } = this.#options;
    let rest = writers;
    for (let pause = LOOK_MS; rest.length > 0; pause = Math.min(2 * pause, patienceMs)) {
      await sleep(pause, undefined, { ref: false });
      rest = await ask.stillWriting(rest);
    }
  }
}

const AWAIT = 'select was_awaited as "wasAwaited", at, writers from private.await_events($1)';
const STILL_WRITING = `
  select array(
    select virtualtransaction from pg_locks
    where locktype = 'relation' and relation = 'private.events_awaited_until'::regclass
      and database = (select oid from pg_database where datname = current_database())
      and virtualtransaction = any ($1)
  ) as writers`;

/** Postgres has no such schema or function: whoever tells events there does it always. */
const NOT_OURS: readonly (string | undefined)[] = ["3F000", "42883"];
const NOT_PERMITTED = "42501";

type Surroundings = { readonly asOwner: AsOwner; readonly log: Pick<Logger, "warn"> };

export function makeLeaseQuestions({ asOwner, log }: Surroundings): LeaseQuestions {
  let isNeeded = true;

  const notAsked = (error: unknown): null => {
    const code = error instanceof pg.DatabaseError ? error.code : undefined;
    if (code === NOT_PERMITTED) log.warn("subscriptions hear nothing: the login may not execute private.await_events");
    else if (!NOT_OURS.includes(code)) throw error;
    isNeeded = false;
    return null;
  };

  return {
    awaitEvents: async (seconds) => {
      if (!isNeeded) return null;
      const asked = asOwner((client) => client.query<Awaited>(AWAIT, [seconds]));
      return asked.then(({ rows }) => rows[0]!, notAsked);
    },
    stillWriting: (writers) =>
      asOwner(async (client) => (await client.query<Awaited>(STILL_WRITING, [writers])).rows[0]!.writers),
  };
}
