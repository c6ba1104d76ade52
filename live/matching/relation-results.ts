import type { ReplicatedRelation, RowChange } from "../stream/changes.ts";
import {
  conditionsOf,
  decidesOn,
  type FilteredResult,
  isNeverAffected,
  type ResultContents,
  type RowConditions,
  rowBefore,
} from "./affected-rows.ts";
import { type ResultGroup, RowIndex } from "./row-index.ts";

/** A result of rows, as changes of rows affect it. `tableRows`: not null if it can change without a run. */
export type MatchedResult = FilteredResult & { readonly tableRows: object | null };

type AffectedByChange<Result> = {
  readonly results: ReadonlySet<Result>;
  readonly groups: ReadonlySet<ResultGroup<Result>>;
};

/** The conditions of results, by the positions and types that the relation's columns have now. */
class IndexedResults<Result extends MatchedResult> {
  readonly relation: ReplicatedRelation;
  readonly results = new Map<Result, RowConditions>();
  readonly before = new RowIndex<Result>();
  readonly after = new RowIndex<Result>();
  /** The conditions of results that have left: most come back with the same contents, or without. */
  readonly #known = new WeakMap<ResultContents | Result, RowConditions>();

  constructor(relation: ReplicatedRelation) {
    this.relation = relation;
  }

  add(result: Result): void {
    const conditions = this.#conditionsOf(result);
    this.results.set(result, conditions);
    this.before.add(result, conditions.before);
    this.after.add(result, conditions.after);
  }

  remove(result: Result): void {
    const conditions = this.results.get(result);
    if (!conditions) return;
    this.results.delete(result);
    this.before.remove(result, conditions.before);
    this.after.remove(result, conditions.after);
  }

  #conditionsOf(result: Result): RowConditions {
    const key = result.contents ?? result;
    const conditions = this.#known.get(key) ?? conditionsOf(result, this.relation);
    this.#known.set(key, conditions);
    return conditions;
  }
}

/** The results that depend on a relation, by the rows that can change them. */
export class RelationResults<Result extends MatchedResult> {
  readonly #oid: number;
  readonly #all = new Set<Result>();
  readonly #withContents = new Set<Result>();
  /** The number of results that are the rows of a table. */
  #withTableRows = 0;
  /** Null until the first change. */
  #indexed: IndexedResults<Result> | null = null;

  constructor(oid: number) {
    this.#oid = oid;
  }

  get isEmpty(): boolean {
    return this.#all.size === 0;
  }

  /** True if the rows of some result decide which changes affect it. */
  get dependsOnContents(): boolean {
    return this.#withContents.size > 0;
  }

  /** True if a result can change without a run. */
  get hasTableRows(): boolean {
    return this.#withTableRows > 0;
  }

  has(result: Result): boolean {
    return this.#all.has(result);
  }

  add(result: Result): void {
    this.#all.add(result);
    if (result.tableRows) this.#withTableRows++;
    if (decidesOn(result.contents, this.#oid)) this.#withContents.add(result);
    if (this.#indexed) this.#index(this.#indexed, result);
  }

  /** Also call this before the contents of the result change. */
  remove(result: Result): void {
    if (!this.#all.delete(result)) return;
    this.#withContents.delete(result);
    if (result.tableRows) this.#withTableRows--;
    this.#indexed?.remove(result);
  }

  /** The results that the change affects: single ones by their values, and groups. */
  affectedBy(change: RowChange): AffectedByChange<Result> {
    const indexed = this.#indexFor(change.relation);
    const affected = { results: new Set<Result>(), groups: new Set<ResultGroup<Result>>() };
    if (change.kind === "TRUNCATE") affected.groups.add(indexed);
    else {
      if (change.kind !== "INSERT") indexed.before.find(rowBefore(change), affected);
      if (change.kind !== "DELETE") indexed.after.find(change.new!, affected);
    }
    return affected;
  }

  #indexFor(relation: ReplicatedRelation): IndexedResults<Result> {
    if (this.#indexed && hasSameColumns(this.#indexed.relation, relation)) return this.#indexed;
    const indexed = new IndexedResults<Result>(relation);
    for (const result of this.#all) this.#index(indexed, result);
    this.#indexed = indexed;
    return indexed;
  }

  #index(indexed: IndexedResults<Result>, result: Result): void {
    if (!isNeverAffected(result, this.#oid)) indexed.add(result);
  }
}

/** Postgres describes a table again also where nothing of it has changed. */
function hasSameColumns(one: ReplicatedRelation, other: ReplicatedRelation): boolean {
  return (
    one === other ||
    (one.columns.length === other.columns.length &&
      one.columns.every(({ name, typeName, isIdentity }, index) => {
        const same = other.columns[index]!;
        return name === same.name && typeName === same.typeName && isIdentity === same.isIdentity;
      }))
  );
}
