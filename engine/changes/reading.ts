import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import { isFatal } from "../database/wire/decode.ts";
import { delayBefore } from "../delay-before.ts";
import { ApiError } from "../errors.ts";
import type { Logger } from "../log.ts";
import type { Audience } from "./audience.ts";
import type { Change, ChangesState, Message, Relation, Transaction } from "./changes.ts";
import type { Lsn } from "./lsn.ts";
import type { Told } from "./pgoutput.ts";
import { LogSession, type SessionOptions, type SessionReader } from "./session.ts";
import type { Slot } from "./slots.ts";

export type ReadingOptions = {
  readonly session: SessionOptions;
  readonly audience: Audience;
  readonly log: Pick<Logger, "info" | "warn">;
  /** From where to read, when that is seen which can be read. */
  beginAt(slot: Slot): Lsn;
  /** Between two transactions: everything up to the position has been told. */
  onPassed(reading: Reading): void;
};

/** What Postgres refuses to read so many times in a row is left out. */
const MOST_REFUSALS = 5;

/** One reading of the log, which goes on after each loss of its connection where it was, in the middle of a transaction too. */
export class Reading implements SessionReader {
  readonly #options: ReadingOptions;
  readonly #closed = new AbortController();
  readonly #abandoned = Promise.withResolvers<void>();
  readonly #started = Promise.withResolvers<void>();
  #status: Exclude<ChangesState["status"], "idle"> = "opening";
  #reason: string | null = null;
  #session: LogSession | null = null;
  /** That which the position is in. */
  #history: string | null = null;
  #next: Lsn = 0n;
  /** What Postgres says of what comes next. */
  #unreadable: string | null = null;
  #open: Transaction | null = null;
  /** The last of the open transaction that was told. */
  #toldIndex = -1;
  #telling: Told = undefined;

  constructor(options: ReadingOptions) {
    this.#options = options;
    this.#started.promise.catch(() => {});
  }

  get status(): ChangesState["status"] {
    return this.#status;
  }

  get reason(): string | null {
    return this.#reason;
  }

  /** Null before it has started. */
  get slot(): Slot | null {
    return this.#session?.slot ?? null;
  }

  get transaction(): Transaction | null {
    return this.#open;
  }

  /** Null before it has started. */
  get history(): string | null {
    return this.#history;
  }

  /** Every transaction up to there has been told. */
  get position(): Lsn {
    return this.#next - 1n;
  }

  /** Whoever comes now is told of the transactions above it. */
  get head(): Lsn {
    return this.#open?.commitLsn ?? this.position;
  }

  /** Rejects with an ApiError when there is nothing to be read here. */
  get started(): Promise<void> {
    return this.#started.promise;
  }

  /** Until it is closed, or refused. */
  async run(): Promise<void> {
    let failures = 0;
    let refusals = 0;
    while (!this.#closed.signal.aborted) {
      const before = this.#next;
      const error = await this.#readUntilLost();
      if (this.#closed.signal.aborted) break;
      if (error instanceof ApiError && this.#history === null) {
        this.#refuse(error);
        return;
      }
      failures = this.#next === before ? failures + 1 : 1;
      refusals = this.#next === before ? refusals : 0;
      if (this.#status === "streaming" && isRefusal(error)) refusals++;
      // As where the publication did not exist yet: what comes next in the log cannot be read, now or ever.
      if (refusals >= MOST_REFUSALS) this.#unreadable = (error as Error).message;
      this.#lose(error, failures);
      const pause = delayBefore(failures);
      await sleep(pause, undefined, { signal: this.#closed.signal, ref: false }).catch(() => {});
    }
    this.#started.reject(new Error("The changes are no longer followed"));
  }

  close(): void {
    this.#closed.abort();
    this.#abandoned.resolve();
    this.#session?.close();
  }

  begin(transaction: Transaction): void {
    if (this.#open?.commitLsn === transaction.commitLsn) return;
    this.#open = transaction;
    this.#toldIndex = -1;
    this.#options.audience.begin(transaction);
  }

  wants(relation: Relation): boolean {
    return this.#options.audience.wants(relation);
  }

  change(change: Change): Told {
    if (change.index <= this.#toldIndex) return;
    this.#toldIndex = change.index;
    return this.#tell(this.#options.audience.change(change));
  }

  message(message: Omit<Message, "transaction">): Told {
    if (this.#open) {
      if (message.index <= this.#toldIndex) return;
      this.#toldIndex = message.index;
    } else {
      if (message.lsn <= this.#next) return;
      this.#next = message.lsn;
    }
    return this.#tell(this.#options.audience.message(message));
  }

  commit(next: Lsn): Told {
    const told = this.#tell(this.#options.audience.commit());
    this.#next = next;
    this.#open = null;
    return told ? told.then(() => this.#options.onPassed(this)) : this.#options.onPassed(this);
  }

  passed(next: Lsn): void {
    if (next <= this.#next) return;
    this.#next = next;
    if (!this.#open) this.#options.onPassed(this);
  }

  next(): Lsn {
    return this.#next;
  }

  #tell(told: Told): Told {
    this.#telling = told;
    return told;
  }

  /** Resolves with what ended it. */
  async #readUntilLost(): Promise<unknown> {
    try {
      // Of the connection before; who hangs does not keep us from closing.
      await Promise.race([this.#telling, this.#abandoned.promise]);
      const session = await LogSession.open(this.#options.session, this.#closed.signal);
      this.#session = session;
      this.#closed.signal.throwIfAborted();
      this.#place(session);
      const { ended } = await session.start(this);
      this.#begin();
      return await ended;
    } catch (error) {
      return error;
    } finally {
      this.#session?.close();
      this.#session = null;
    }
  }

  #place({ history, slot }: LogSession): void {
    if (this.#history === null) this.#next = this.#options.beginAt(slot);
    else if (this.#unreadable) this.#leap(slot, `a change cannot be read: ${this.#unreadable}`);
    else if (this.#history !== history)
      this.#leap(slot, "this is another database cluster than before, or one that was promoted");
    else if (this.#next > slot.now) this.#leap(slot, "the database has lost what had been read of it");
    else if (this.#next < slot.earliest) this.#leap(slot, "the database no longer keeps what came after");
    this.#history = history;
    this.#unreadable = null;
  }

  #leap({ earliest, now }: Slot, reason: string): void {
    const after = this.position;
    this.#next = earliest > now ? earliest : now;
    this.#open = null;
    this.#options.log.warn({ reason }, "changes were missed");
    this.#options.audience.gap({ reason, after, until: this.position });
  }

  /** Nobody knows when it goes on: whoever follows is not to wait without knowing it. */
  #giveNotice({ message }: ApiError): void {
    this.#open = null;
    this.#options.audience.gap({ reason: message, after: this.position, until: this.position });
  }

  #begin(): void {
    if (this.#status !== "opening") this.#options.log.info("following the changes again");
    this.#status = "streaming";
    this.#reason = null;
    this.#started.resolve();
  }

  #refuse(error: ApiError): void {
    this.#status = "refused";
    this.#reason = error.message;
    this.#started.reject(error);
  }

  #lose(error: unknown, failures: number): void {
    const isRefused = error instanceof ApiError;
    const isNewlyRefused = isRefused && this.#status !== "refused";
    if (isNewlyRefused) this.#giveNotice(error);
    this.#status = isRefused ? "refused" : "away";
    this.#reason = (error as Error).message;
    if (failures === 1 || isNewlyRefused)
      this.#options.log.warn({ err: error }, "not following the changes; trying again");
  }
}

/** By Postgres, which is well itself. */
function isRefusal(error: unknown): boolean {
  return error instanceof pg.DatabaseError && !isFatal(error);
}
