import type { Lsn } from "#postgres/database";
import type { CommittedTransaction, RowChange } from "../changes.ts";
import type { DependentResult, LiveQueryResult, RelationResults } from "./relation-results.ts";
import type { ResultGroup } from "./row-index.ts";
import type { AffectingXids } from "./shared-result.ts";

type AffectedOfRelation<Result> = { readonly groups: Set<ResultGroup<Result>>; readonly xids: number[] };

/** The results that changes affect. Groups can have thousands, which are listed when they are taken. */
export class AffectedResults<Result extends DependentResult = LiveQueryResult> {
  readonly #results = new Map<Result, number[]>();
  readonly #relations = new Map<RelationResults<Result>, AffectedOfRelation<Result>>();
  readonly xids = new Set<number>();
  /** The last commit. */
  position: Lsn = 0n;

  get isEmpty(): boolean {
    return this.#results.size === 0 && this.#relations.size === 0;
  }

  add(result: Result): void {
    this.#xidsOf(result);
  }

  addChange(change: RowChange, of: RelationResults<Result>): void {
    const { results, groups } = of.affectedBy(change);
    for (const result of results) this.add(result);
    if (groups.size > 0) this.#addGroups(of, groups);
  }

  addCommit(changed: AffectedResults<Result>, transaction: CommittedTransaction): void {
    for (const [of, { groups }] of changed.#relations) this.#addGroups(of, groups).xids.push(transaction.xid);
    this.addResults(changed.#results.keys(), transaction);
  }

  addResults(results: Iterable<Result>, { xid, commitLsn }: CommittedTransaction): void {
    for (const result of results) this.#xidsOf(result).push(xid);
    this.xids.add(xid);
    if (commitLsn > this.position) this.position = commitLsn;
  }

  remove(result: Result): void {
    this.#results.delete(result);
  }

  /** Keeps a result that is affected by a group, which it may leave. */
  keep(result: Result): void {
    for (const { groups, xids } of this.#relations.values())
      if (groups.values().some(({ results }) => results.has(result))) this.#xidsOf(result).push(...xids);
  }

  /** Each result once. */
  list(): Map<Result, AffectingXids> {
    const listed = new Map<Result, (readonly number[])[]>();
    const add = (result: Result, xids: readonly number[]) => {
      const known = listed.get(result);
      if (known) known.push(xids);
      else listed.set(result, [xids]);
    };
    for (const [result, xids] of this.#results) add(result, xids);
    for (const { groups, xids } of this.#relations.values())
      for (const group of groups) for (const result of group.results.keys()) add(result, xids);
    return listed;
  }

  #xidsOf(result: Result): number[] {
    const xids = this.#results.get(result) ?? [];
    this.#results.set(result, xids);
    return xids;
  }

  #addGroups(of: RelationResults<Result>, groups: Iterable<ResultGroup<Result>>): AffectedOfRelation<Result> {
    const affected = this.#relations.get(of) ?? { groups: new Set(), xids: [] };
    this.#relations.set(of, affected);
    for (const group of groups) affected.groups.add(group);
    return affected;
  }
}
