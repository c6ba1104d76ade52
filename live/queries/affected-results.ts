import type { Lsn } from "#postgres/database";
import type { CommittedTransaction, RowChange } from "../changes.ts";
import type { FilterColumn, LiveQueryResult, RelationResults } from "./relation-results.ts";

type AffectedGroups = { readonly columns: Set<FilterColumn>; readonly xids: number[] };

/** The transactions that have affected a result, in lists that several results share. */
export type AffectingXids = readonly (readonly number[])[];

/** The results that changes affect. Groups can have thousands, which are listed when they are taken. */
export class AffectedResults {
  readonly #results = new Map<LiveQueryResult, number[]>();
  readonly #groups = new Map<RelationResults, AffectedGroups>();
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
    const { results, columns } = of.affectedBy(change);
    for (const result of results) this.add(result);
    if (columns.length === 0) return;
    const groups = this.#groupsOf(of);
    for (const column of columns) groups.columns.add(column);
  }

  addCommit(changed: AffectedResults, { xid, commitLsn }: CommittedTransaction): void {
    for (const result of changed.#results.keys()) this.#xidsOf(result).push(xid);
    for (const [of, { columns }] of changed.#groups) {
      const groups = this.#groupsOf(of);
      for (const column of columns) groups.columns.add(column);
      groups.xids.push(xid);
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
    for (const [of, { columns, xids }] of this.#groups)
      for (const column of columns) for (const result of of.group(column)) add(result, xids);
    return listed;
  }

  #xidsOf(result: LiveQueryResult): number[] {
    const xids = this.#results.get(result) ?? [];
    this.#results.set(result, xids);
    return xids;
  }

  #groupsOf(of: RelationResults): AffectedGroups {
    const groups = this.#groups.get(of) ?? { columns: new Set(), xids: [] };
    this.#groups.set(of, groups);
    return groups;
  }
}
