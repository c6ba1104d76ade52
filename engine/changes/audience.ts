import type { Logger } from "../log.ts";
import type { Change, Follower, Gap, Message, Relation, Transaction } from "./changes.ts";
import type { Lsn } from "./lsn.ts";
import type { Told } from "./pgoutput.ts";

/** One who follows, and from where. */
export class Seat {
  readonly follower: Follower;
  /** Transactions up to there are known already. */
  after: Lsn;
  /** Of the open transaction. */
  hasBegun = false;

  constructor(follower: Follower, after: Lsn) {
    this.follower = follower;
    this.after = after;
  }
}

/** Those who follow one reading of the log, each told what it wants. */
export class Audience {
  /** What was told to anybody, and how often something was missed. */
  readonly counts = { transactions: 0, changes: 0, gaps: 0 };
  readonly #log: Pick<Logger, "error">;
  readonly #seats = new Set<Seat>();
  /** Who was here when the open transaction began: others come with the next one. */
  #present: Seat[] = [];
  #transaction: Transaction | null = null;
  /** Who wants the rows of a relation, in the open transaction. */
  readonly #wanting = new Map<number, readonly Seat[]>();

  constructor(log: Pick<Logger, "error">) {
    this.#log = log;
  }

  get size(): number {
    return this.#seats.size;
  }

  add(seat: Seat): void {
    this.#seats.add(seat);
  }

  remove(seat: Seat): void {
    this.#seats.delete(seat);
    this.#sendOut(seat);
  }

  seats(): Seat[] {
    return [...this.#seats];
  }

  begin(transaction: Transaction): void {
    this.#transaction = transaction;
    this.#wanting.clear();
    this.#present = [...this.#seats].filter((seat) => seat.after < transaction.commitLsn);
    for (const seat of this.#present) seat.hasBegun = false;
  }

  wants(relation: Relation): boolean {
    return this.#wantingOf(relation).length > 0;
  }

  change(change: Change): Told {
    const transaction = this.#transaction!;
    this.counts.changes++;
    return this.#tellEach(this.#wantingOf(change.relation), (seat) => seat.follower.change(change, transaction));
  }

  message(message: Omit<Message, "transaction">): Told {
    const transaction = this.#transaction;
    const whole = { ...message, transaction };
    const listening = transaction ? this.#present : [...this.#seats].filter((seat) => seat.after < message.lsn);
    return this.#tellEach(
      listening.filter(({ follower }) => follower.message),
      (seat) => seat.follower.message!(whole),
    );
  }

  commit(): Told {
    const transaction = this.#transaction!;
    const begun = this.#present.filter((seat) => seat.hasBegun);
    if (begun.length > 0) this.counts.transactions++;
    const told = this.#tellEach(begun, (seat) => seat.follower.commit?.(transaction));
    this.#transaction = null;
    this.#present = [];
    return told;
  }

  gap(gap: Gap): void {
    this.counts.gaps++;
    this.#transaction = null;
    this.#present = [];
    for (const seat of this.#seats) {
      // Which may be lower than before.
      seat.after = gap.until;
      this.#tellOfGap(seat, gap);
    }
  }

  #wantingOf(relation: Relation): readonly Seat[] {
    const known = this.#wanting.get(relation.oid);
    if (known) return known;
    const wanting = this.#present.filter((seat) => this.#wants(seat, relation));
    this.#wanting.set(relation.oid, wanting);
    return wanting;
  }

  #wants(seat: Seat, relation: Relation): boolean {
    try {
      return seat.follower.wants(relation);
    } catch (error) {
      this.#fail(seat, error);
      return false;
    }
  }

  #tellEach(seats: readonly Seat[], tell: (seat: Seat) => Told): Told {
    let waiting: Promise<void> | null = null;
    for (const seat of seats) {
      const told = this.#tell(seat, tell);
      if (told) waiting = waiting ? Promise.all([waiting, told]).then(() => {}) : told;
    }
    return waiting ?? undefined;
  }

  /** What it throws is its own concern: the others go on. */
  #tell(seat: Seat, tell: (seat: Seat) => Told): Told {
    try {
      const told = this.#begun(seat, tell);
      return told?.catch((error) => this.#fail(seat, error));
    } catch (error) {
      this.#fail(seat, error);
    }
  }

  #begun(seat: Seat, tell: (seat: Seat) => Told): Told {
    if (seat.hasBegun || !this.#transaction) return tell(seat);
    seat.hasBegun = true;
    const begun = seat.follower.begin?.(this.#transaction);
    return begun ? begun.then(() => tell(seat)) : tell(seat);
  }

  #fail(seat: Seat, error: unknown): void {
    this.#log.error({ err: error }, "a follower of changes failed");
    if (!this.#seats.has(seat)) return;
    const at = this.#transaction?.commitLsn ?? seat.after;
    this.#sendOut(seat);
    this.#tellOfGap(seat, { reason: "what follows the changes has failed", after: at, until: at });
  }

  /** Until the next transaction. */
  #sendOut(seat: Seat): void {
    const others = (seats: readonly Seat[]) => seats.filter((each) => each !== seat);
    this.#present = others(this.#present);
    for (const [relation, wanting] of this.#wanting) this.#wanting.set(relation, others(wanting));
  }

  #tellOfGap(seat: Seat, gap: Gap): void {
    try {
      seat.follower.gap(gap);
    } catch (error) {
      this.#log.error({ err: error }, "a follower of changes failed at a gap");
    }
  }
}
