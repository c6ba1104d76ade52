import type { AsOwner } from "#postgres/database";
import { type DecidedTransactions, makeAwaitVisible } from "../stream/transaction-visibility.ts";
import type { RunningTransactions } from "./running-transactions.ts";

type CommitVisibilityOptions = {
  readonly asOwner: AsOwner;
  readonly streamTimeline: () => number | null;
  readonly decided: DecidedTransactions;
  readonly transactions: RunningTransactions;
  /** Transactions have become visible that were not after a long time. */
  onLate(): void;
};

/** Waits until commits of the stream are visible to new snapshots. */
export class CommitVisibility {
  readonly #options: CommitVisibilityOptions;
  readonly #findInvisible: ReturnType<typeof makeAwaitVisible>;
  /** Transactions that were not visible after a long time. */
  #late: ReadonlySet<number> = new Set();

  constructor(options: CommitVisibilityOptions) {
    this.#options = options;
    this.#findInvisible = makeAwaitVisible(options.asOwner, options.streamTimeline);
  }

  get areAllVisible(): boolean {
    return this.#late.size === 0;
  }

  /** Resolves when these and the decided transactions are visible, or after a long time. */
  async awaitVisible(xids?: ReadonlySet<number>): Promise<void> {
    const { decided, transactions, onLate } = this.#options;
    const late = await decided.awaitVisible(this.#findInvisible, xids);
    this.#late = this.#late.union(late);
    transactions.whenEnded(late, {
      onEnded: (ended) => {
        this.#late = this.#late.difference(ended);
        onLate();
      },
    });
  }
}
