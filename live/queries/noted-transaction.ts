import type { CommittedTransaction, RowChange } from "../changes.ts";
import { isExcluded } from "./affected-rows.ts";
import type { LiveQueryResult } from "./relation-results.ts";

/** The changes of a transaction, for queries that are being opened: what these depend on is not known yet. */
export class NotedTransaction {
  readonly #relations = new Set<number>();
  readonly #changes: RowChange[] = [];
  #hasMore = false;
  /** Null until it is complete. */
  transaction: CommittedTransaction | null = null;

  /** `isKept`: whether there is room for the row. */
  add(change: RowChange, isKept: boolean): void {
    this.#relations.add(change.relation.oid);
    if (isKept) this.#changes.push(change);
    else this.#hasMore = true;
  }

  affects({ dependencies, filters }: LiveQueryResult): boolean {
    return dependencies.relations.some(({ oid }) => {
      if (!this.#relations.has(oid)) return false;
      const own = filters.filter(({ relation }) => relation === oid);
      if (this.#hasMore || own.length === 0) return true;
      return this.#changes.some(
        (change) => change.relation.oid === oid && !own.some((filter) => isExcluded(change, filter)),
      );
    });
  }
}
