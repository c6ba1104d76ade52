import type { Lsn } from "#postgres/database";
import type { Logger } from "#runtime/log";
import type {
  ChangeFollower,
  CommittedTransaction,
  LogicalMessage,
  ReplicatedRelation,
  ReplicationGap,
  RowChange,
} from "./changes.ts";
import type { HandlerResult } from "./pgoutput.ts";

/** A follower and the position that it has reached. */
export class FollowerPosition {
  readonly follower: ChangeFollower;
  /** The history that `after` is from, for a follower that resumes. */
  readonly history: string | null;
  /** True if the follower has received the begin of the open transaction. */
  hasBegun = false;
  /** The last transaction whose begin the follower has received. */
  lastBegun: Lsn = 0n;
  #after: Lsn;

  constructor(follower: ChangeFollower, after: Lsn, history: string | null = null) {
    this.follower = follower;
    this.#after = after;
    this.history = history;
  }

  /** Transactions up to this position are not delivered. */
  get after(): Lsn {
    return this.#after;
  }

  moveTo(after: Lsn): void {
    this.#after = after;
  }
}

/** The followers of one reader; each gets the changes that it wants. */
export class Followers {
  /** The deliveries to at least one follower, and the number of gaps. */
  readonly counts = { transactions: 0, changes: 0, gaps: 0 };
  readonly #log: Pick<Logger, "error">;
  readonly #positions = new Set<FollowerPosition>();
  /** Followers that joined before the open transaction began; the others start with the next one. */
  #participants: FollowerPosition[] = [];
  #transaction: CommittedTransaction | null = null;
  /** The interested followers by relation, in the open transaction. */
  readonly #interestedByRelation = new Map<number, readonly FollowerPosition[]>();

  constructor(log: Pick<Logger, "error">) {
    this.#log = log;
  }

  get size(): number {
    return this.#positions.size;
  }

  add(position: FollowerPosition): void {
    this.#positions.add(position);
  }

  remove(position: FollowerPosition): void {
    this.#positions.delete(position);
    this.#leaveTransaction(position);
  }

  positions(): FollowerPosition[] {
    return [...this.#positions];
  }

  begin(transaction: CommittedTransaction): void {
    this.#transaction = transaction;
    this.#interestedByRelation.clear();
    this.#participants = [...this.#positions].filter((position) => position.after < transaction.commitLsn);
    for (const position of this.#participants) position.hasBegun = false;
  }

  wants(relation: ReplicatedRelation): boolean {
    return this.#interestedIn(relation).length > 0;
  }

  change(change: RowChange): HandlerResult {
    const transaction = this.#transaction!;
    this.counts.changes++;
    return this.#notifyEach(this.#interestedIn(change.relation), (position) =>
      position.follower.change(change, transaction),
    );
  }

  message(message: Omit<LogicalMessage, "transaction">): HandlerResult {
    const transaction = this.#transaction;
    const whole = { ...message, transaction };
    const listening = transaction
      ? this.#participants
      : [...this.#positions].filter((position) => position.after < message.lsn);
    return this.#notifyEach(
      listening.filter(({ follower }) => follower.message),
      (position) => position.follower.message!(whole),
    );
  }

  commit(): HandlerResult {
    const transaction = this.#transaction!;
    const begun = this.#participants.filter((position) => position.hasBegun);
    if (begun.length > 0) this.counts.transactions++;
    const handled = this.#notifyEach(begun, (position) => position.follower.commit?.(transaction));
    this.#transaction = null;
    this.#participants = [];
    return handled;
  }

  gap(gap: ReplicationGap): void {
    this.counts.gaps++;
    this.#abandonTransaction();
    for (const position of this.#positions) {
      // The position may be lower than before.
      position.moveTo(gap.until);
      this.#notifyOfGap(position, gap);
    }
  }

  /** The stream continues at `gap.until` on another timeline. Only followers that cannot discard changes beyond it get the gap. */
  rewind(gap: ReplicationGap): void {
    if (this.#transaction && this.#transaction.commitLsn > gap.until) this.#abandonTransaction();
    let isMissed = false;
    for (const position of this.#positions) {
      if (this.#rewindOne(position, gap.until + 1n)) continue;
      isMissed = true;
      this.#notifyOfGap(position, gap);
    }
    if (isMissed) this.counts.gaps++;
  }

  #abandonTransaction(): void {
    this.#transaction = null;
    this.#participants = [];
  }

  /** Returns true if the follower misses nothing. */
  #rewindOne(position: FollowerPosition, to: Lsn): boolean {
    const isUnaffected = position.lastBegun < to;
    if (position.after >= to) position.moveTo(to - 1n);
    position.lastBegun = 0n;
    if (!position.follower.rewind) return isUnaffected;
    try {
      return position.follower.rewind(to);
    } catch (error) {
      this.#log.error({ err: error }, "a follower of changes failed at a change of the timeline");
      return false;
    }
  }

  #interestedIn(relation: ReplicatedRelation): readonly FollowerPosition[] {
    const cached = this.#interestedByRelation.get(relation.oid);
    if (cached) return cached;
    const interested = this.#participants.filter((position) => this.#isInterested(position, relation));
    this.#interestedByRelation.set(relation.oid, interested);
    return interested;
  }

  #isInterested(position: FollowerPosition, relation: ReplicatedRelation): boolean {
    try {
      return position.follower.wants(relation);
    } catch (error) {
      this.#fail(position, error);
      return false;
    }
  }

  #notifyEach(
    positions: readonly FollowerPosition[],
    notify: (position: FollowerPosition) => HandlerResult,
  ): HandlerResult {
    let waiting: Promise<void> | null = null;
    for (const position of positions) {
      const handled = this.#notify(position, notify);
      if (handled) waiting = waiting ? Promise.all([waiting, handled]).then(() => {}) : handled;
    }
    return waiting ?? undefined;
  }

  /** An error of one follower does not affect the others. */
  #notify(position: FollowerPosition, notify: (position: FollowerPosition) => HandlerResult): HandlerResult {
    try {
      const handled = this.#beginAndNotify(position, notify);
      return handled?.catch((error) => this.#fail(position, error));
    } catch (error) {
      this.#fail(position, error);
    }
  }

  #beginAndNotify(position: FollowerPosition, notify: (position: FollowerPosition) => HandlerResult): HandlerResult {
    if (position.hasBegun || !this.#transaction) return notify(position);
    position.hasBegun = true;
    position.lastBegun = this.#transaction.commitLsn;
    const begun = position.follower.begin?.(this.#transaction);
    return begun ? begun.then(() => notify(position)) : notify(position);
  }

  #fail(position: FollowerPosition, error: unknown): void {
    this.#log.error({ err: error }, "a follower of changes failed");
    if (!this.#positions.has(position)) return;
    const at = this.#transaction?.commitLsn ?? position.after;
    this.#leaveTransaction(position);
    this.#notifyOfGap(position, { reason: "what follows the changes has failed", after: at, until: at });
  }

  /** The follower receives nothing more until the next transaction. */
  #leaveTransaction(position: FollowerPosition): void {
    const others = (positions: readonly FollowerPosition[]) => positions.filter((each) => each !== position);
    this.#participants = others(this.#participants);
    for (const [relation, interested] of this.#interestedByRelation)
      this.#interestedByRelation.set(relation, others(interested));
  }

  #notifyOfGap(position: FollowerPosition, gap: ReplicationGap): void {
    try {
      position.follower.gap(gap);
    } catch (error) {
      this.#log.error({ err: error }, "a follower of changes failed at a gap");
    }
  }
}
