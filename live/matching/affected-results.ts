import type { Lsn } from "#postgres/database";
import type { CommittedChange, CommittedTransaction, RowChange } from "../stream/changes.ts";
import type { MatchedResult, RelationResults } from "./relation-results.ts";
import type { ResultGroup } from "./row-index.ts";

/** The transactions that have affected a result, in lists that several results share. */
export type AffectingXids = readonly (readonly number[])[];
/** Null: the changes are unknown, or too many. */
type KnownChanges = readonly CommittedChange[] | null;
/** The transactions and changes that have affected a result, without those that have not. */
type Affecting = { readonly xids: AffectingXids; readonly changes: KnownChanges };

type AffectedResult = { readonly xids: number[]; changes: KnownChanges };
type AffectedOfRelation<Result> = { readonly groups: Map<ResultGroup<Result>, KnownChanges>; readonly xids: number[] };

/** The limit for a result or a group. Above it, a run costs less. */
const MAX_CHANGES = 100;
/** The limit for all changes that are kept until the results are taken. */
const MAX_BYTES = 16 * 2 ** 20;
const BYTES_OF_CHANGE = 200;
const BYTES_OF_CELL = 16;

/** The results that changes affect. Groups can have thousands, which are listed when they are taken. */
export class AffectedResults<Result extends MatchedResult> {
  readonly #results = new Map<Result, AffectedResult>();
  readonly #relations = new Map<RelationResults<Result>, AffectedOfRelation<Result>>();
  readonly #xids = new Set<number>();
  #bytes = 0;
  #areChangesLost = false;
  #position: Lsn = 0n;

  get isEmpty(): boolean {
    return this.#results.size === 0 && this.#relations.size === 0;
  }

  get xids(): ReadonlySet<number> {
    return this.#xids;
  }

  /** The position of the last commit. */
  get position(): Lsn {
    return this.#position;
  }

  /** True if changes were forgotten, also after they were listed. */
  get areChangesLost(): boolean {
    return this.#areChangesLost;
  }

  /** Adds a result that was affected by something else than rows. */
  add(result: Result): void {
    this.#affectedOf(result).changes = null;
  }

  addChange(change: CommittedChange, of: RelationResults<Result>): void {
    const { results, groups } = of.affectedBy(change.change);
    const changes = of.hasTableRows && this.#hasRoomFor(sizeOf(change.change)) ? [change] : null;
    for (const result of results) this.#addChanges(result, changes);
    if (groups.size > 0)
      this.#addGroups(
        of,
        groups.values().map((group) => [group, changes] as const),
      );
  }

  addCommit(changed: AffectedResults<Result>, transaction: CommittedTransaction): void {
    if (!this.#hasRoomFor(changed.#bytes)) changed.forgetChanges();
    for (const [of, { groups }] of changed.#relations) this.#addGroups(of, groups).xids.push(transaction.xid);
    for (const [result, { changes }] of changed.#results) this.#addChanges(result, changes);
    this.#addTransaction(changed.#results.keys(), transaction);
  }

  addResults(results: readonly Result[], transaction: CommittedTransaction): void {
    for (const result of results) this.add(result);
    this.#addTransaction(results, transaction);
  }

  /** Forgets the changes if they may be from a lost timeline, or take too many bytes. The results then need a run. */
  forgetChanges(): void {
    this.#areChangesLost = true;
    for (const affected of this.#results.values()) affected.changes = null;
    for (const { groups } of this.#relations.values()) for (const group of groups.keys()) groups.set(group, null);
  }

  remove(result: Result): void {
    this.#results.delete(result);
  }

  /** Keeps a result that a group has affected, since the result may leave the group. */
  keep(result: Result): void {
    for (const { groups, xids } of this.#relations.values())
      if (groups.keys().some(({ results }) => results.has(result))) {
        this.#affectedOf(result).xids.push(...xids);
        this.add(result);
      }
  }

  /** Lists each affected result once. */
  list(): Map<Result, Affecting> {
    const listed = new Map<Result, { readonly xids: (readonly number[])[]; changes: KnownChanges }>();
    const add = (result: Result, xids: readonly number[], changes: KnownChanges) => {
      const known = listed.get(result);
      if (!known) listed.set(result, { xids: [xids], changes });
      else {
        known.xids.push(xids);
        known.changes = merge(known.changes, changes);
      }
    };
    for (const [result, { xids, changes }] of this.#results) add(result, xids, changes);
    for (const { groups, xids } of this.#relations.values())
      for (const [group, changes] of groups) for (const result of group.results.keys()) add(result, xids, changes);
    return listed;
  }

  #addTransaction(results: Iterable<Result>, { xid, commitLsn }: CommittedTransaction): void {
    for (const result of results) this.#affectedOf(result).xids.push(xid);
    this.#xids.add(xid);
    if (commitLsn > this.#position) this.#position = commitLsn;
  }

  #addChanges(result: Result, changes: KnownChanges): void {
    const affected = this.#affectedOf(result);
    affected.changes = join(affected.changes, changes);
  }

  #hasRoomFor(bytes: number): boolean {
    if (this.#bytes + bytes > MAX_BYTES) return false;
    this.#bytes += bytes;
    return true;
  }

  #affectedOf(result: Result): AffectedResult {
    const affected = this.#results.get(result) ?? { xids: [], changes: [] };
    this.#results.set(result, affected);
    return affected;
  }

  #addGroups(
    of: RelationResults<Result>,
    groups: Iterable<readonly [ResultGroup<Result>, KnownChanges]>,
  ): AffectedOfRelation<Result> {
    const affected = this.#relations.get(of) ?? { groups: new Map(), xids: [] };
    this.#relations.set(of, affected);
    for (const [group, changes] of groups) {
      const known = affected.groups.get(group);
      affected.groups.set(group, known === undefined ? changes : join(known, changes));
    }
    return affected;
  }
}

function sizeOf({ old, new: row }: RowChange): number {
  return [...(old ?? []), ...(row ?? [])].reduce(
    (sum, text) => sum + (text?.length ?? 0) + BYTES_OF_CELL,
    BYTES_OF_CHANGE,
  );
}

function join(earlier: KnownChanges, later: KnownChanges): KnownChanges {
  if (!earlier || !later || earlier.length + later.length > MAX_CHANGES) return null;
  return earlier.length === 0 ? later : [...earlier, ...later];
}

/** Merges the changes of a result that was found in two ways, in order, each change once. */
function merge(some: KnownChanges, others: KnownChanges): KnownChanges {
  const all = join(some, others);
  if (!all) return null;
  const byNumber = new Map(all.map((each) => [each.number, each]));
  return [...byNumber.values()].toSorted((one, other) => one.number - other.number);
}
