import type { Logger } from "#runtime/log";
import { ALL_CHANGED, type DefinitionChanges, type DefinitionWatch } from "../dependencies/definition-changes.ts";
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
  readonly dependencies: Pick<DependencyCache, "forgetChanged">;
  readonly definitions: Pick<DefinitionWatch, "readChanges">;
  /** Resolves when queries are compiled for the present definitions. */
  reloadDefinitions(): Promise<void>;
  readonly log: Pick<Logger, "warn">;
};

/** A change of definitions that was reported. `areLoaded`: true if queries are compiled for them. */
type ReportedChange = { readonly xids: Set<number>; areLoaded: boolean };

/** Gives commits of the stream to the results that they affect, when they are visible. */
export class CommitDelivery {
  readonly #options: DeliveryOptions;
  /** Null if the definitions are as they were read. */
  #reported: ReportedChange | null = null;
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

  /** Call when the stream has a change of definitions. Later commits are delivered when it is known which results it affects. */
  review({ xid }: CommittedTransaction): void {
    this.#report().xids.add(xid);
    this.start();
  }

  /** Call when definitions are found changed, and queries are compiled for them, but the stream may not have reported it. */
  reviewLoaded(): void {
    this.#report(true);
    this.start();
  }

  /** Call when the stream may have missed a change of definitions, or a transaction that came late may have made one. */
  outdateAll(): void {
    this.#report();
    this.#outdate(ALL_CHANGED);
    this.start();
  }

  #report(areLoaded = false): ReportedChange {
    this.#reported ??= { xids: new Set(), areLoaded: true };
    if (!areLoaded) this.#reported.areLoaded = false;
    return this.#reported;
  }

  #outdate(changes: DefinitionChanges): void {
    const { dependencies, marks, results } = this.#options;
    dependencies.forgetChanged(changes);
    // It is not known what they depend on.
    marks.openings.outdate();
    for (const result of results.list()) if (changes.affect(result.dependencies)) void result.handle("outdated");
  }

  async #deliverAll(): Promise<void> {
    const { marks, visibility } = this.#options;
    this.#isDelivering = true;
    for (let marked = marks.take(); !this.#isStopped; marked = marks.take()) {
      const reported = this.#reported;
      if (marked.isEmpty && !reported && !marks.decided.areMany) break;
      this.#reported = null;
      await visibility.awaitVisible(marked.xids.union(reported?.xids ?? new Set()));
      if (reported) await this.#reviewDefinitions(reported);
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

  async #reviewDefinitions({ areLoaded }: ReportedChange): Promise<void> {
    this.#outdate(await this.#options.definitions.readChanges());
    if (areLoaded) return;
    try {
      await this.#options.reloadDefinitions();
    } catch (error) {
      this.#options.log.warn({ err: error }, "the definitions could not be reloaded for live queries");
    }
  }
}
