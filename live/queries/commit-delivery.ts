import type { Logger } from "#runtime/log";
import type { DependencyCache } from "../dependencies/dependency-cache.ts";
import type { AffectedResults } from "../matching/affected-results.ts";
import type { CommittedTransaction } from "../stream/changes.ts";
import type { ChangeMarks } from "./change-marks.ts";
import type { CommitVisibility } from "./commit-visibility.ts";
import type { LiveQueryResult } from "./live-subscriber.ts";
import { workWithPauses } from "./paused-work.ts";
import type { SharedResults } from "./shared-results.ts";

type DeliveryOptions = {
  readonly marks: ChangeMarks;
  readonly results: SharedResults;
  readonly visibility: CommitVisibility;
  readonly dependencies: DependencyCache;
  /** Resolves when queries are compiled for the present definitions. */
  reloadDefinitions(): Promise<void>;
  readonly log: Pick<Logger, "warn">;
};

/** Gives commits of the stream to the results that they affect, when they are visible. */
export class CommitDelivery {
  readonly #options: DeliveryOptions;
  /** Transactions that have changed definitions; null if the definitions are as they were loaded. */
  #definitionXids: Set<number> | null = null;
  #isDelivering = false;
  #isStopped = false;

  constructor(options: DeliveryOptions) {
    this.#options = options;
  }

  /** Delivers all that is marked. Results that are marked in the meantime follow in the next turn. */
  start(): void {
    if (!this.#isDelivering) void this.#deliverAll();
  }

  stop(): void {
    this.#isStopped = true;
  }

  /** Call when the stream has a change of definitions. Null: perhaps it has missed one. */
  outdate(transaction: CommittedTransaction | null): void {
    this.#definitionXids ??= new Set();
    if (transaction) this.#definitionXids.add(transaction.xid);
    this.outdateAll();
    this.start();
  }

  outdateAll(): void {
    const { dependencies, marks, results } = this.#options;
    dependencies.forget();
    marks.openings.outdate();
    for (const result of results.list()) void result.handle("outdated");
  }

  async #deliverAll(): Promise<void> {
    const { marks, visibility } = this.#options;
    this.#isDelivering = true;
    for (let marked = marks.take(); !this.#isStopped; marked = marks.take()) {
      const definitionXids = this.#definitionXids;
      if (marked.isEmpty && !definitionXids && !marks.decided.areMany) break;
      this.#definitionXids = null;
      await visibility.awaitVisible(marked.xids.union(definitionXids ?? new Set()));
      if (definitionXids) await this.#reloadDefinitions();
      await this.#deliver(marked);
    }
    this.#isDelivering = false;
  }

  #deliver(marked: AffectedResults<LiveQueryResult>): Promise<void> {
    const { visibility, results } = this.#options;
    const { position } = marked;
    return workWithPauses(marked.list(), ([result, { xids, changes }]) => {
      // The others may be from a lost timeline, or lack transactions.
      const areSure = visibility.areAllVisible && !marked.areChangesLost;
      if (result.deliver({ xids, changes: areSure ? changes : null, position })) results.recount(result);
    });
  }

  async #reloadDefinitions(): Promise<void> {
    // Data that was read since the stream had the change may be from before the change was visible.
    this.outdateAll();
    try {
      await this.#options.reloadDefinitions();
    } catch (error) {
      this.#options.log.warn({ err: error }, "the definitions could not be reloaded for live queries");
    }
  }
}
