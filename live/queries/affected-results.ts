import type { Lsn } from "#postgres/database";
import type { CommittedTransaction, RowChange } from "../changes.ts";
import type { LiveQueryResult, RelationResults, ResultGroup } from "./relation-results.ts";
import type { AffectingXids } from "./shared-result.ts";

type AffectedOfRelation = { readonly groups: Set<ResultGroup>; readonly xids: number[] };

/** The results that changes affect. Groups can have thousands, which are listed when they are taken. */
export class AffectedResults {
  readonly #results = new Map<LiveQueryResult, number[]>();
  readonly #relations = new Map<RelationResults, AffectedOfRelation>();
  readonly xids = new Set<number>();
  /** The last commit. */
  position: Lsn = 0n;

  get isEmpty(): boolean {
    return this.#results.size === 0 && this.#relations.size === 0;
  }

  add(result: LiveQueryResult): void {
    this.#xidsOf(result);
  }

  addChange(change: RowChange, of: RelationResults): void {
    const { results, groups } = of.affectedBy(change);
    for (const result of results) this.add(result);
    if (groups.length > 0) this.#addGroups(of, groups);
  }

  addCommit(changed: AffectedResults, transaction: CommittedTransaction): void {
    for (const [of, { groups }] of changed.#relations) this.#addGroups(of, groups).xids.push(transaction.xid);
    this.addResults(changed.#results.keys(), transaction);
  }

  addResults(results: Iterable<LiveQueryResult>, { xid, commitLsn }: CommittedTransaction): void {
    for (const result of results) this.#xidsOf(result).push(xid);
    this.xids.add(xid);
    if (commitLsn > this.position) this.position = commitLsn;
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
    for (const [of, { groups, xids }] of this.#relations)
      for (const group of groups) for (const result of of.list(group)) add(result, xids);
    return listed;
  }

  #xidsOf(result: LiveQueryResult): number[] {
    const xids = this.#results.get(result) ?? [];
    this.#results.set(result, xids);
    return xids;
  }

  #addGroups(of: RelationResults, groups: Iterable<ResultGroup>): AffectedOfRelation {
    const affected = this.#relations.get(of) ?? { groups: new Set(), xids: [] };
    this.#relations.set(of, affected);
    for (const group of groups) affected.groups.add(group);
    return affected;
  }
}
