import type { Lsn } from "#postgres/database";
import type { CommittedTransaction, RowChange } from "../changes.ts";
import type { LiveQueryResult, RelationResults } from "./relation-results.ts";

type AffectedGroup = { isWhole: boolean; readonly xids: number[] };

/** The transactions that have affected a result, in lists that several results share. */
export type AffectingXids = readonly (readonly number[])[];

/**
 * The results that changes affect. Those that every change of a relation affects can be thousands: they are noted as one group, and listed when
 * they are taken.
 */
export class AffectedResults {
  readonly #results = new Map<LiveQueryResult, number[]>();
  readonly #groups = new Map<RelationResults, AffectedGroup>();
  readonly xids = new Set<number>();
  /** The last commit. */
  position: Lsn = 0n;

  get isEmpty(): boolean {
    return this.#results.size === 0 && this.#groups.size === 0;
  }

  add(result: LiveQueryResult): void {
    this.#xidsOf(result);
  }

  addChange(change: RowChange, of: RelationResults): void {
    const filtered = of.filteredBy(change);
    if (filtered === "all") this.#groupOf(of).isWhole = true;
    else for (const result of filtered) this.add(result);
    if (of.hasUnfiltered) this.#groupOf(of);
  }

  addCommit(changed: AffectedResults, { xid, commitLsn }: CommittedTransaction): void {
    for (const result of changed.#results.keys()) this.#xidsOf(result).push(xid);
    for (const [of, { isWhole }] of changed.#groups) {
      const group = this.#groupOf(of);
      group.isWhole ||= isWhole;
      group.xids.push(xid);
    }
    this.xids.add(xid);
    this.position = commitLsn;
  }

  remove(result: LiveQueryResult): void {
    this.#results.delete(result);
  }

  /** Each result once. */
  list(): Map<LiveQueryResult, AffectingXids> {
    const listed = new Map<LiveQueryResult, (readonly number[])[]>();
    const add = (result: LiveQueryResult, xids: readonly number[]) => {
      const known = listed.get(result);
      if (known) known.push(xids);
      else listed.set(result, [xids]);
    };
    for (const [result, xids] of this.#results) add(result, xids);
    for (const [of, { isWhole, xids }] of this.#groups) for (const result of of.group(isWhole)) add(result, xids);
    return listed;
  }

  #xidsOf(result: LiveQueryResult): number[] {
    const xids = this.#results.get(result) ?? [];
    this.#results.set(result, xids);
    return xids;
  }

  #groupOf(of: RelationResults): AffectedGroup {
    const group = this.#groups.get(of) ?? { isWhole: false, xids: [] };
    this.#groups.set(of, group);
    return group;
  }
}
