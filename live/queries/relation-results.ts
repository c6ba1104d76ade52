import type { RowChange } from "../changes.ts";
import { comparableTexts, type EqualityFilter, isExcluded, textsOfFilter } from "./affected-rows.ts";
import type { LiveSubscriber } from "./live-subscriber.ts";
import type { SharedResult } from "./shared-result.ts";

export type LiveQueryResult = SharedResult<LiveSubscriber>;

/** Results with a filter on one column, by the values of it. */
type FilteredResults = {
  readonly column: string;
  readonly isExact: boolean;
  readonly byText: Map<string, Set<LiveQueryResult>>;
};
/** Null: those that each change of the relation affects. */
export type ResultGroup = FilteredResults | null;

/** The results that depend on a relation; those with an equality filter are found by its values. */
export class RelationResults {
  readonly #oid: number;
  readonly #unfiltered = new Set<LiveQueryResult>();
  #filtered: FilteredResults[] = [];
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
    if (!filter) {
      this.#unfiltered.add(result);
      return;
    }
    const { byText } = this.#findGroup(filter) ?? this.#addGroup(filter);
    for (const text of textsOfFilter(filter)!) byText.set(text, (byText.get(text) ?? new Set()).add(result));
  }

  remove(result: LiveQueryResult): void {
    if (!this.#all.delete(result)) return;
    this.#unfiltered.delete(result);
    const filter = this.#indexedFilter(result);
    const group = filter && this.#findGroup(filter);
    if (!group) return;
    for (const text of textsOfFilter(filter)!) {
      const results = group.byText.get(text);
      results?.delete(result);
      if (results?.size === 0) group.byText.delete(text);
    }
    if (group.byText.size === 0) this.#filtered = this.#filtered.filter((each) => each !== group);
  }

  /** The results that the change affects: single ones by their values, and groups. */
  affectedBy(change: RowChange): { readonly results: Iterable<LiveQueryResult>; readonly groups: ResultGroup[] } {
    const results = new Set<LiveQueryResult>();
    const groups: ResultGroup[] = this.#unfiltered.size > 0 ? [null] : [];
    for (const group of this.#filtered) {
      const texts = comparableTexts(change, group);
      if (texts === null) groups.push(group);
      for (const text of texts ?? [])
        for (const result of group.byText.get(text) ?? [])
          if (!this.#filtersOf(result).some((each) => isExcluded(change, each))) results.add(result);
    }
    return { results, groups };
  }

  *list(group: ResultGroup): Iterable<LiveQueryResult> {
    if (group === null) yield* this.#unfiltered;
    else for (const results of group.byText.values()) yield* results;
  }

  #findGroup({ column, isExact = false }: EqualityFilter): FilteredResults | undefined {
    return this.#filtered.find((group) => group.column === column && group.isExact === isExact);
  }

  #addGroup({ column, isExact = false }: EqualityFilter): FilteredResults {
    const group: FilteredResults = { column, isExact, byText: new Map() };
    this.#filtered.push(group);
    return group;
  }

  #filtersOf({ filters }: LiveQueryResult): EqualityFilter[] {
    return filters.filter(({ relation }) => relation === this.#oid);
  }

  /** Null where the texts of its values do not tell. */
  #indexedFilter(result: LiveQueryResult): EqualityFilter | null {
    return this.#filtersOf(result).find((filter) => textsOfFilter(filter) !== null) ?? null;
  }
}
