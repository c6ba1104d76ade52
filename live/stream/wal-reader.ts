import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import { isFatal } from "#postgres/client";
import { formatLsn, type Lsn } from "#postgres/database";
import { ApiError } from "#runtime";
import type { WorkReport } from "#runtime/concurrency";
import type { Logger } from "#runtime/log";
import type {
  CommittedTransaction,
  LogicalMessage,
  ReplicatedRelation,
  ReplicationState,
  RowChange,
  StreamHistory,
} from "./changes.ts";
import type { Followers } from "./followers.ts";
import type { HandlerResult } from "./pgoutput.ts";
import { type ReplicationHandler, ReplicationSession, type ReplicationSessionOptions } from "./replication-session.ts";
import type { ReplicationSlot } from "./replication-slots.ts";
import { validUntil } from "./stream-history.ts";

type WalReaderOptions = {
  readonly session: ReplicationSessionOptions;
  readonly followers: Followers;
  readonly log: Pick<Logger, "info" | "warn">;
  readonly report: WorkReport;
  /** The position to start at, given the WAL that the slot still has. */
  beginAt(slot: ReplicationSlot, history: StreamHistory): Lsn;
  /** Called between transactions: everything up to the position was delivered. */
  onPassed(reading: WalReader): void;
};

const UNDEFINED_FILE = "58P01";
/** Opening waits for all writing transactions if there is no slot to copy: after this time, it takes too long. */
const OPENING_MS = 5_000;
/** A change that Postgres fails to decode this many times in a row is skipped. */
const MAX_REFUSALS = 5;

/** Reads the WAL, and resumes where it stopped after a lost connection, even within a transaction. */
export class WalReader implements ReplicationHandler {
  readonly #options: WalReaderOptions;
  readonly #closed = new AbortController();
  readonly #abandoned = Promise.withResolvers<void>();
  readonly #started = Promise.withResolvers<void>();
  #status: Exclude<ReplicationState["status"], "idle"> = "opening";
  #reason: string | null = null;
  #session: ReplicationSession | null = null;
  /** The history that the position belongs to. */
  #history: StreamHistory | null = null;
  #next: Lsn = 0n;
  /** Why Postgres cannot decode the next change. */
  #unreadable: string | null = null;
  /** The start of the slot whose WAL is gone: after a restore or `pg_rewind`, Postgres may still report it as reserved. */
  #goneFrom: string | null = null;
  #transaction: CommittedTransaction | null = null;
  /** The last change of the open transaction that was delivered. */
  #handledIndex = -1;
  #handling: HandlerResult = undefined;

  constructor(options: WalReaderOptions) {
    this.#options = options;
    this.#started.promise.catch(() => {});
  }

  get status(): ReplicationState["status"] {
    return this.#status;
  }

  get reason(): string | null {
    return this.#reason;
  }

  /** Null before the start. */
  get slot(): ReplicationSlot | null {
    return this.#session?.slot ?? null;
  }

  get transaction(): CommittedTransaction | null {
    return this.#transaction;
  }

  /** Null before the start. */
  get history(): StreamHistory | null {
    return this.#history;
  }

  /** Every transaction up to this position was delivered. */
  get position(): Lsn {
    return this.#next - 1n;
  }

  /** A follower that joins now gets the transactions above it. */
  get head(): Lsn {
    return this.#transaction?.commitLsn ?? this.position;
  }

  /** Rejects with an ApiError if this database gives no stream. */
  get started(): Promise<void> {
    return this.#started.promise;
  }

  /** Runs until it is closed or refused. */
  async run(): Promise<void> {
    try {
      await this.#options.report.run(
        () => this.#readAgainAndAgain(),
        () => this.#session?.close(),
      );
    } finally {
      this.#options.report.close();
    }
  }

  async #readAgainAndAgain(): Promise<void> {
    let refusals = 0;
    while (!this.#closed.signal.aborted) {
      const before = this.#next;
      const error = await this.#readUntilLost();
      if (this.#closed.signal.aborted) break;
      if (error instanceof ApiError && this.#history === null) {
        this.#refuse(error);
        return;
      }
      refusals = this.#next === before ? refusals : 0;
      if (this.#status === "streaming" && isQueryRefused(error)) refusals++;
      // The publication may not have existed then, for example: the change can never be decoded.
      if (refusals >= MAX_REFUSALS) this.#unreadable = (error as Error).message;
      const pause = this.#onLost(error);
      await sleep(pause, undefined, { signal: this.#closed.signal, ref: false }).catch(() => {});
    }
    this.#started.reject(new Error("The changes are no longer followed"));
  }

  close(): void {
    this.#closed.abort();
    this.#abandoned.resolve();
    this.#session?.close();
  }

  begin(transaction: CommittedTransaction): void {
    if (this.#transaction?.commitLsn === transaction.commitLsn) return;
    this.#transaction = transaction;
    this.#handledIndex = -1;
    this.#options.followers.begin(transaction);
  }

  wants(relation: ReplicatedRelation): boolean {
    return this.#options.followers.wants(relation);
  }

  change(change: RowChange): HandlerResult {
    if (change.index <= this.#handledIndex) return;
    this.#handledIndex = change.index;
    return this.#handle(this.#options.followers.change(change));
  }

  message(message: Omit<LogicalMessage, "transaction">): HandlerResult {
    if (this.#transaction) {
      if (message.index <= this.#handledIndex) return;
      this.#handledIndex = message.index;
    } else {
      if (message.lsn <= this.#next) return;
      this.#next = message.lsn;
    }
    return this.#handle(this.#options.followers.message(message));
  }

  commit(next: Lsn): HandlerResult {
    const handled = this.#handle(this.#options.followers.commit());
    this.#next = next;
    this.#transaction = null;
    return handled ? handled.then(() => this.#options.onPassed(this)) : this.#options.onPassed(this);
  }

  passed(next: Lsn): void {
    if (next <= this.#next) return;
    this.#next = next;
    if (!this.#transaction) this.#options.onPassed(this);
  }

  next(): Lsn {
    return this.#next;
  }

  stalled(reason: string): void {
    this.#options.report.fails(new Error(reason));
  }

  continued(): void {
    this.#options.report.runs();
  }

  #handle(handled: HandlerResult): HandlerResult {
    this.#handling = handled;
    return handled;
  }

  /** Resolves with the reason for its end. */
  async #readUntilLost(): Promise<unknown> {
    const late = setTimeout(() => this.stalled("Postgres does not open the stream"), OPENING_MS).unref();
    try {
      const { signal } = this.#closed;
      const session = await ReplicationSession.open(this.#options.session, signal);
      this.#session = session;
      const switchPoint = this.#history && switchPointBetween(this.#history, session.history);
      if (switchPoint) this.#rewind(switchPoint, session.history);
      // A follower may still handle a change from the previous connection; one that hangs must not prevent closing.
      await Promise.race([this.#handling, this.#abandoned.promise]);
      const slot = await session.createSlot(signal, this.#goneFrom);
      this.#goneFrom = null;
      if (this.#history === null) this.#next = this.#options.beginAt(slot, session.history);
      else this.#continueAt(slot, switchPoint);
      this.#history = session.history;
      this.#unreadable = null;
      const { ended } = await session.start(this);
      clearTimeout(late);
      this.#begin();
      return await ended;
    } catch (error) {
      if (isFileGone(error)) this.#goneFrom = this.slot?.restart ?? null;
      return error;
    } finally {
      clearTimeout(late);
      this.#session?.close();
      this.#session = null;
    }
  }

  /** The server was promoted, perhaps without all WAL that was read. Followers may wait for the timeline, so they learn of it early. */
  #rewind(switchPoint: Lsn, history: StreamHistory): void {
    const after = this.position;
    if (this.#next > switchPoint) this.#next = switchPoint;
    if (this.#transaction && this.#transaction.commitLsn >= switchPoint) this.#transaction = null;
    this.#history = history;
    this.#options.log.info({ from: formatLsn(switchPoint) }, "following the changes of a new timeline");
    const reason = "the database was promoted without the last changes that were read";
    this.#options.followers.rewind({ reason, after, until: switchPoint - 1n });
  }

  #continueAt(slot: ReplicationSlot, switchPoint: Lsn | null): void {
    if (this.#unreadable) this.#skipTo(slot, `a change cannot be read: ${this.#unreadable}`);
    else if (switchPoint === 0n)
      this.#skipTo(slot, "this is another database cluster than before, or an earlier timeline of it");
    else if (this.#next > slot.now) this.#skipTo(slot, "the database has lost what had been read of it");
    else if (this.#next < slot.earliest && switchPoint !== null)
      this.#skipTo(slot, "the database was promoted, and does not keep what came after");
    else if (this.#next < slot.earliest) this.#skipTo(slot, "the database no longer keeps what came after");
  }

  #skipTo({ earliest, now }: ReplicationSlot, reason: string): void {
    const after = this.position;
    this.#next = earliest > now ? earliest : now;
    this.#transaction = null;
    this.#options.log.warn({ reason }, "changes were missed");
    this.#options.followers.gap({ reason, after, until: this.position });
  }

  /** Followers must know that the stream may not continue soon. */
  #announceRefusal({ message }: ApiError): void {
    this.#transaction = null;
    this.#options.followers.gap({ reason: message, after: this.position, until: this.position });
  }

  #begin(): void {
    this.#options.report.runs();
    this.#status = "streaming";
    this.#reason = null;
    this.#started.resolve();
  }

  #refuse(error: ApiError): void {
    this.#status = "refused";
    this.#reason = error.message;
    this.#started.reject(error);
  }

  /** Returns the pause until the next attempt. */
  #onLost(error: unknown): number {
    const isRefused = error instanceof ApiError;
    const isNewlyRefused = isRefused && this.#status !== "refused";
    if (isNewlyRefused) this.#announceRefusal(error);
    this.#status = isRefused ? "refused" : "away";
    this.#reason = (error as Error).message;
    if (isNewlyRefused) this.#options.log.warn({ err: error }, "changes are not streamed; trying again");
    return this.#options.report.fails(error);
  }
}

/** The position where the next history leaves the last one; 0 if they are unrelated, null if they are the same. */
function switchPointBetween(last: StreamHistory, next: StreamHistory): Lsn | null {
  return last.id === next.id ? null : validUntil(next, last.id);
}

/** The server has removed a file of the WAL. */
function isFileGone(error: unknown): boolean {
  return error instanceof pg.DatabaseError && error.code === UNDEFINED_FILE;
}

/** Postgres refused the query; the connection itself is usable. */
function isQueryRefused(error: unknown): boolean {
  return error instanceof pg.DatabaseError && !isFatal(error);
}
