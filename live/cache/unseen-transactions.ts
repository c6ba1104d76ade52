import { isTransactionVisible } from "../transaction-visibility.ts";

/** So many are kept without a look at a snapshot. */
const MAX_UNSEEN = 1_000;

/**
 * Transactions that the stream has delivered and that no snapshot is known to include. A commit is in the stream a moment before new
 * snapshots include it, and long before where it waits for a synchronous standby. A result that was read in between would never be dropped.
 */
export class UnseenTransactions {
  readonly #readSnapshot: () => Promise<string>;
  #xids = new Set<number>();
  #isReading = false;

  constructor(readSnapshot: () => Promise<string>) {
    this.#readSnapshot = readSnapshot;
  }

  get xids(): readonly number[] {
    return [...this.#xids];
  }

  add(xid: number): void {
    this.#xids.add(xid);
    if (this.#xids.size > MAX_UNSEEN && !this.#isReading) void this.#look();
  }

  /** Forgets those that the snapshot includes: later ones include them, too. */
  saw(snapshot: string): void {
    for (const xid of this.#xids) if (isTransactionVisible(xid, snapshot)) this.#xids.delete(xid);
  }

  clear(): void {
    this.#xids = new Set();
  }

  async #look(): Promise<void> {
    this.#isReading = true;
    const before = this.#xids;
    const snapshot = await this.#readSnapshot().catch(() => null);
    if (snapshot !== null && before === this.#xids) this.saw(snapshot);
    this.#isReading = false;
  }
}
