import type { ReplicatedRow } from "../stream/changes.ts";
import { type CellCondition, meetsAll, textOfCells, toOrderedValue } from "./affected-rows.ts";

/** Results that are affected together. They are listed when they are taken. */
export type ResultGroup<Result> = { readonly results: ReadonlyMap<Result, unknown> };

type Conditions = readonly CellCondition[];
type ValueCondition = Extract<CellCondition, { kind: "values" }>;
type RangeCondition = Extract<CellCondition, { kind: "range" }>;

type AffectedByRow<Result> = { readonly results: Set<Result>; readonly groups: Set<ResultGroup<Result>> };

/** Results with one condition in common. */
class ResultsOfCondition<Result> {
  readonly results = new Map<Result, Conditions>();
  /** The number of results that have other conditions too. */
  #withOthers = 0;

  add(result: Result, conditions: Conditions): void {
    this.results.set(result, conditions);
    if (conditions.length > 1) this.#withOthers++;
  }

  remove(result: Result): void {
    const conditions = this.results.get(result);
    if (!conditions) return;
    this.results.delete(result);
    if (conditions.length > 1) this.#withOthers--;
  }

  /** `row`: a row that meets the condition. */
  find(row: ReplicatedRow, { results, groups }: AffectedByRow<Result>): void {
    if (this.#withOthers === 0 && this.results.size > 1) groups.add(this);
    else for (const [result, conditions] of this.results) if (meetsAll(row, conditions)) results.add(result);
  }
}

/** Results by the values of some columns. */
class ResultsByValue<Result> {
  readonly results = new Map<Result, Conditions>();
  readonly #at: readonly number[];
  readonly #byText = new Map<string, Result | ResultsOfCondition<Result>>();

  constructor({ at }: ValueCondition) {
    this.#at = at;
  }

  add(result: Result, conditions: Conditions, { texts }: ValueCondition): void {
    this.results.set(result, conditions);
    for (const text of texts) {
      const found = this.#byText.get(text);
      if (found instanceof ResultsOfCondition) found.add(result, conditions);
      // Most keys are in one result alone: more than that for each would take more memory than the result.
      else if (found === undefined) this.#byText.set(text, result);
      else {
        const both = new ResultsOfCondition<Result>();
        both.add(found, this.results.get(found)!);
        both.add(result, conditions);
        this.#byText.set(text, both);
      }
    }
  }

  remove(result: Result, { texts }: ValueCondition): void {
    this.results.delete(result);
    for (const text of texts) {
      const found = this.#byText.get(text);
      if (found instanceof ResultsOfCondition) found.remove(result);
      if (found === result || (found instanceof ResultsOfCondition && found.results.size === 0))
        this.#byText.delete(text);
    }
  }

  find(row: ReplicatedRow, affected: AffectedByRow<Result>): void {
    const text = textOfCells(row, this.#at);
    if (text === undefined) affected.groups.add(this);
    const found = text === undefined || text === null ? undefined : this.#byText.get(text);
    if (found instanceof ResultsOfCondition) found.find(row, affected);
    else if (found !== undefined && meetsAll(row, this.results.get(found)!)) affected.results.add(found);
  }
}

/** Results by ranges of one column, which are compared one after the other. */
class ResultsByRange<Result> {
  readonly results = new Map<Result, Conditions>();
  readonly #at: RangeCondition["at"];
  readonly #byRange = new Map<string, RangeCondition & { readonly of: ResultsOfCondition<Result> }>();

  constructor({ at }: RangeCondition) {
    this.#at = at;
  }

  add(result: Result, conditions: Conditions, range: RangeCondition): void {
    this.results.set(result, conditions);
    const key = keyOfRange(range);
    const found = this.#byRange.get(key) ?? { ...range, of: new ResultsOfCondition<Result>() };
    found.of.add(result, conditions);
    this.#byRange.set(key, found);
  }

  remove(result: Result, range: RangeCondition): void {
    this.results.delete(result);
    const key = keyOfRange(range);
    const found = this.#byRange.get(key);
    found?.of.remove(result);
    if (found?.of.results.size === 0) this.#byRange.delete(key);
  }

  find(row: ReplicatedRow, affected: AffectedByRow<Result>): void {
    const cell = row[this.#at[0]];
    if (cell === undefined) affected.groups.add(this);
    const value = typeof cell === "string" ? toOrderedValue(cell) : null;
    if (value === null) return;
    for (const { least, greatest, of } of this.#byRange.values())
      if (least <= value && value <= greatest) of.find(row, affected);
  }
}

function keyOfRange({ least, greatest }: RangeCondition): string {
  return `${least} ${greatest}`;
}

/** Finds the results all of whose conditions a row may meet. */
export class RowIndex<Result> {
  readonly #unconditional = { results: new Map<Result, Conditions>() };
  /** The results by the positions of the columns. */
  readonly #byValue = new Map<string, ResultsByValue<Result>>();
  readonly #byRange = new Map<string, ResultsByRange<Result>>();

  add(result: Result, conditions: Conditions): void {
    const condition = indexedCondition(conditions);
    if (!condition) {
      this.#unconditional.results.set(result, conditions);
      return;
    }
    const key = condition.at.join();
    if (condition.kind === "values") {
      const group = this.#byValue.get(key) ?? new ResultsByValue(condition);
      group.add(result, conditions, condition);
      this.#byValue.set(key, group);
    } else {
      const group = this.#byRange.get(key) ?? new ResultsByRange(condition);
      group.add(result, conditions, condition);
      this.#byRange.set(key, group);
    }
  }

  remove(result: Result, conditions: Conditions): void {
    this.#unconditional.results.delete(result);
    const condition = indexedCondition(conditions);
    if (condition?.kind === "values") this.#byValue.get(condition.at.join())?.remove(result, condition);
    else if (condition) this.#byRange.get(condition.at.join())?.remove(result, condition);
  }

  find(row: ReplicatedRow, affected: AffectedByRow<Result>): void {
    if (this.#unconditional.results.size > 0) affected.groups.add(this.#unconditional);
    for (const group of this.#byValue.values()) group.find(row, affected);
    for (const group of this.#byRange.values()) group.find(row, affected);
  }
}

/** Values are found at once. */
function indexedCondition(conditions: Conditions): CellCondition | undefined {
  return conditions.find(({ kind }) => kind === "values") ?? conditions[0];
}
