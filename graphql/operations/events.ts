import pg from "pg";
import { parseRowEvent, topicsOf } from "#plugins";
import type { Listener } from "#postgres/client";
import { type AsOwner, CURRENT_TIMELINE } from "#postgres/database";
import { Supervisor, type WorkReport } from "#runtime/concurrency";
import type { Logger } from "#runtime/log";
import { EventLease, type LeaseQueries } from "./event-lease.ts";
import { EventQueue } from "./subscription-delivery.ts";

const READ_LAST_NUMBER = `select (case when is_called then last_value else 0 end)::pg_catalog.float8 as last,
  ${CURRENT_TIMELINE} as timeline from content_service.event_number`;
// A transaction that took a number holds a lock until it ends. Queried second, so that no transaction is missed in between.
const READ_SETTLED = `
  select not exists (
    select from pg_catalog.pg_locks
    where locktype = 'relation' and relation = 'content_service.event_number'::pg_catalog.regclass and mode = 'RowExclusiveLock'
      and database = (select oid from pg_catalog.pg_database where datname = pg_catalog.current_database())
  ) as "isSettled"`;

/** SQLSTATEs of a missing schema or sequence: events come from other triggers. */
const UNNUMBERED_SQLSTATES: readonly (string | undefined)[] = ["3F000", "42P01"];

/** The NOTIFY channel of row events. */
const EVENT_CHANNEL = "graphql";
const FIRST_PAUSE_MS = 250;
const MAX_PAUSE_MS = 30_000;

type RowEventHubOptions = {
  readonly listener: Listener;
  readonly readIssuedNumbers: ReadIssuedNumbers;
  readonly leaseQueries: LeaseQueries;
  readonly supervisor?: Supervisor;
  readonly log: Pick<Logger, "info" | "warn">;
};

/** Receives row events by one LISTEN and distributes them to the subscriptions of this process. */
export class RowEventHub {
  readonly #topics = new Map<string, Set<EventQueue>>();
  readonly #topicsOfQueue = new Map<EventQueue, string[]>();
  readonly #listening: Promise<() => void>;
  readonly #stopHearingOfGaps: () => void;
  readonly #gapDetector: EventGapDetector;
  readonly #lease: EventLease;
  readonly #report: WorkReport;
  readonly #log: RowEventHubOptions["log"];
  /** Runs one gap check at a time. */
  #queue: Promise<void> = Promise.resolve();
  #timer: NodeJS.Timeout | undefined;
  #isClosed = false;

  constructor(options: RowEventHubOptions) {
    const { listener, readIssuedNumbers, leaseQueries, log, supervisor = new Supervisor({ log }) } = options;
    this.#report = supervisor.report("events of subscriptions");
    this.#gapDetector = new EventGapDetector(readIssuedNumbers);
    this.#lease = new EventLease({
      queries: leaseQueries,
      report: this.#report,
      onDoubt: () => this.#bridgeGap(),
      onMissed: () => this.#reportLoss([...this.#topicsOfQueue.keys()]),
    });
    this.#log = log;
    this.#listening = listener.listen(EVENT_CHANNEL, (payload) => this.#receive(payload));
    // Subscribers get the error; nobody else waits for it.
    this.#listening.catch(() => {});
    this.#stopHearingOfGaps = listener.onGap(() => this.#bridgeGap());
  }

  /** Opens the queue of one subscription, which receives all events from now on. */
  async open(): Promise<EventQueue> {
    await this.#listening;
    await this.#lease.hold();
    // If there is no other subscription, no subscriber has missed the events before this one.
    if (this.#topicsOfQueue.size === 0) this.#enqueue(async () => void (await this.#gapDetector.mayHaveMissed()));
    const queue: EventQueue = new EventQueue(
      (topic) => this.#join(topic, queue),
      () => this.#leave(queue),
    );
    this.#topicsOfQueue.set(queue, []);
    return queue;
  }

  state(): { subscriptions: number; topics: number } {
    return { subscriptions: this.#topicsOfQueue.size, topics: this.#topics.size };
  }

  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    this.#report.close();
    this.#stopHearingOfGaps();
    for (const queue of this.#topicsOfQueue.keys()) queue.close();
    this.#listening.then((stopListening) => stopListening()).catch(() => {});
  }

  #join(topic: string, queue: EventQueue): void {
    this.#topicsOfQueue.get(queue)?.push(topic);
    const queues = this.#topics.get(topic) ?? new Set();
    this.#topics.set(topic, queues.add(queue));
  }

  #leave(queue: EventQueue): void {
    for (const topic of this.#topicsOfQueue.get(queue) ?? []) {
      const queues = this.#topics.get(topic);
      queues?.delete(queue);
      if (queues?.size === 0) this.#topics.delete(topic);
    }
    this.#topicsOfQueue.delete(queue);
    this.#lease.release();
  }

  #receive(payload: string): void {
    const event = parseRowEvent(payload);
    if (!event) {
      this.#log.warn({ channel: EVENT_CHANNEL }, "ignored a notification that is not a row event");
      return;
    }
    this.#gapDetector.record(event.n);
    for (const topic of topicsOf(event)) for (const queue of this.#topics.get(topic) ?? []) queue.push(event);
  }

  /** Reports a gap to all current subscriptions, unless certainly no event was lost. */
  #bridgeGap(): void {
    const present = [...this.#topicsOfQueue.keys()];
    this.#enqueue(async () => {
      // If the renewal fails, the check fails too and reports a possible gap.
      await this.#lease.renew().catch(() => {});
      if (await this.#gapDetector.mayHaveMissed()) this.#reportLoss(present);
    });
  }

  #reportLoss(queues: readonly EventQueue[]): void {
    this.#log.info({ subscriptions: queues.length }, "events may have been missed");
    for (const queue of queues) queue.reportLoss("gap");
  }

  /** Retries until no transaction with a number is running. */
  #retryCount(pause: number): void {
    if (this.#isClosed || !this.#gapDetector.isUncertain) return;
    this.#enqueue(async () => void (await this.#gapDetector.mayHaveMissed()), Math.min(2 * pause, MAX_PAUSE_MS));
  }

  #enqueue(check: () => Promise<void>, pause = FIRST_PAUSE_MS): void {
    this.#queue = this.#queue.then(check).then(() => {
      clearTimeout(this.#timer);
      this.#timer = setTimeout(() => this.#retryCount(pause), pause).unref();
    });
  }
}

/** The last event number issued, and whether all transactions with numbers up to it are over. */
export type IssuedNumbers = {
  readonly last: number;
  readonly isSettled: boolean;
  /** A promoted standby may issue numbers again, for other events. */
  readonly timeline: number;
};

/** Null when events are not numbered. */
type ReadIssuedNumbers = () => Promise<IssuedNumbers | null>;

export function makeReadIssuedNumbers(asOwner: AsOwner): ReadIssuedNumbers {
  return () =>
    asOwner(async (client) => {
      const { rows: numbers } = await client.query<Omit<IssuedNumbers, "isSettled">>(READ_LAST_NUMBER);
      const { rows: locks } = await client.query<{ isSettled: boolean }>(READ_SETTLED);
      return { ...numbers[0]!, isSettled: locks[0]!.isSettled };
    }).catch((error: unknown) => {
      if (error instanceof pg.DatabaseError && UNNUMBERED_SQLSTATES.includes(error.code)) return null;
      throw error;
    });
}

/**
 * Detects missed events by counting numbers. Numbers are issued while a transaction runs and arrive when it commits, in any order, and
 * never after a rollback: so a wrong count only means that an event may have been missed.
 */
export class EventGapDetector {
  readonly #readIssued: ReadIssuedNumbers;
  /** All transactions with numbers up to this one are over; null while unknown. */
  #base: number | null = null;
  #timeline: number | null = null;
  /** Events received with a number above the base. */
  #received = 0;
  /** Numbers received while the query to Postgres runs. */
  #receivedWhileReading: number[] | null = null;
  /** False once an event without a number was received: such events can be missed unnoticed. */
  #isNumbered = true;

  constructor(readIssued: ReadIssuedNumbers) {
    this.#readIssued = readIssued;
  }

  /** True if another query may establish a base. */
  get isUncertain(): boolean {
    return this.#isNumbered && this.#base === null;
  }

  record(number: unknown): void {
    if (typeof number !== "number") this.#isNumbered = false;
    else if (this.#receivedWhileReading) this.#receivedWhileReading.push(number);
    else if (this.#base !== null && number > this.#base) this.#received++;
  }

  /** Must not run concurrently. May be a false positive, never a false negative. */
  async mayHaveMissed(): Promise<boolean> {
    if (!this.#isNumbered) return true;
    const receivedWhileReading: number[] = [];
    this.#receivedWhileReading = receivedWhileReading;
    const issued = await this.#readIssued().catch(() => "unknown" as const);
    this.#receivedWhileReading = null;
    if (issued === null) this.#isNumbered = false;
    const mayHave = issued === null || issued === "unknown" || !this.#accountsFor(issued, receivedWhileReading);
    this.#restart(issued, receivedWhileReading);
    return mayHave;
  }

  #accountsFor({ last, timeline }: IssuedNumbers, receivedWhileReading: readonly number[]): boolean {
    const base = this.#base;
    if (base === null || !this.#isNumbered || timeline !== this.#timeline) return false;
    return (
      last - base === this.#received + receivedWhileReading.filter((number) => number > base && number <= last).length
    );
  }

  #restart(issued: IssuedNumbers | "unknown" | null, receivedWhileReading: readonly number[]): void {
    this.#base = null;
    if (issued === null || issued === "unknown" || !issued.isSettled) return;
    this.#base = issued.last;
    this.#timeline = issued.timeline;
    this.#received = receivedWhileReading.filter((number) => number > issued.last).length;
  }
}
