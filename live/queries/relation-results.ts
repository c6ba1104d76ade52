import type { RowChange } from "../changes.ts";
import { comparableTexts, type EqualityFilter, isExcluded, toComparableText } from "./affected-rows.ts";
import type { LiveSubscriber } from "./live-subscriber.ts";
import type { SharedResult } from "./shared-result.ts";

export type LiveQueryResult = SharedResult<LiveSubscriber>;

/** The column by which results of a group are found; null for those that each change of the relation affects. */
export type FilterColumn = string | null;

/** The results that depend on a relation; those with an equality filter are found by its values. */
export class RelationResults {
  readonly #oid: number;
  readonly #unfiltered = new Set<LiveQueryResult>();
  readonly #byColumn = new Map<string, Map<string, Set<LiveQueryResult>>>();
  readonly #all = new Set<LiveQueryResult>();

  constructor(oid: number) {
    this.#oid = oid;
  }

  get isEmpty(): boolean {
    return this.#all.size === 0;
  }

  add(result: LiveQueryResult): void {
    this.#all.add(result);
    const filter = this.#indexedFilter(result);
    if (!filter) this.#unfiltered.add(result);
    for (const { column, text } of placesOf(filter)) {
      const byText = this.#byColumn.get(column) ?? new Map<string, Set<LiveQueryResult>>();
      this.#byColumn.set(column, byText);
      byText.set(text, (byText.get(text) ?? new Set()).add(result));
    }
  }

  remove(result: LiveQueryResult): void {
    if (!this.#all.delete(result)) return;
    this.#unfiltered.delete(result);
    for (const { column, text } of placesOf(this.#indexedFilter(result))) {
      const byText = this.#byColumn.get(column);
      const results = byText?.get(text);
      results?.delete(result);
      if (results?.size === 0) byText!.delete(text);
      if (byText?.size === 0) this.#byColumn.delete(column);
    }
  }

  /** The results that the change affects: single ones by their values, and groups. */
  affectedBy(change: RowChange): { readonly results: Iterable<LiveQueryResult>; readonly columns: FilterColumn[] } {
    const results = new Set<LiveQueryResult>();
    const columns: FilterColumn[] = this.#unfiltered.size > 0 ? [null] : [];
    for (const [column, byText] of this.#byColumn) {
      const texts = comparableTexts(change, column);
      if (texts === null) columns.push(column);
      for (const text of texts ?? [])
        for (const result of byText.get(text) ?? [])
          if (!this.#filtersOf(result).some((each) => isExcluded(change, each))) results.add(result);
    }
    return { results, columns };
  }

  *group(column: FilterColumn): Iterable<LiveQueryResult> {
    if (column === null) yield* this.#unfiltered;
    else for (const results of this.#byColumn.get(column)?.values() ?? []) yield* results;
  }

  #filtersOf({ filters }: LiveQueryResult): EqualityFilter[] {
    return filters.filter(({ relation }) => relation === this.#oid);
  }

  /** Null where rows that its filter excludes may change the result too, or where the texts of its values do not tell. */
  #indexedFilter(result: LiveQueryResult): EqualityFilter | null {
    const relations = result.dependencies.relations.filter(({ oid }) => oid === this.#oid);
    if (!relations.some(({ isReadOnce }) => isReadOnce)) return null;
    const isIndexable = ({ values }: EqualityFilter) => values.every((value) => toComparableText(value) !== null);
    return this.#filtersOf(result).find(isIndexable) ?? null;
  }
}

function placesOf(filter: EqualityFilter | null): { readonly column: string; readonly text: string }[] {
  const texts = new Set(filter?.values.map((value) => toComparableText(value)!));
  return [...texts].map((text) => ({ column: filter!.column, text }));
}
