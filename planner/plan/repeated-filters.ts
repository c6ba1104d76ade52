import { ApiError, memoizePerObject } from "#runtime";
import type { SelectPlan, ValueExpression, WherePredicate } from "./selection.ts";

/** The filters of a related table are repeated wherever it is named. They are counted before any SQL is built, which would take long. */
const MAX_REPEATED_PREDICATES = 10_000;

/** 1 for what a repeated selection contains; 0 for what the statement contains once. */
type Weight = 0 | 1;

export function refuseRepeatedFilters(selection: SelectPlan): void {
  refuseAboveLimit(inSelection(selection, 0));
}

export function refuseRepeatedFiltersIn(conditions: readonly WherePredicate[]): void {
  refuseAboveLimit(sum(conditions, (each) => inPredicate(each, 0)));
}

function refuseAboveLimit(repeated: number): void {
  if (repeated <= MAX_REPEATED_PREDICATES) return;
  throw new ApiError("invalid", "54001", "The request repeats the filters of related tables too often", {
    hint: "Refer to a related table fewer times in `select`, `or` and `order`, or filter it by fewer conditions.",
  });
}

function inSelection({ where, having, outputs, spreads, distinct, order }: SelectPlan, weight: Weight): number {
  return (
    sum([...where, ...having], (each) => inPredicate(each, weight)) +
    sum(outputs, (each) => (each.kind === "all" ? 0 : inValue(each.value, weight))) +
    sum(spreads, ({ subquery }) => inSelection(subquery, weight)) +
    sum(distinct, (each) => inValue(each, weight)) +
    sum(order, ({ value }) => inValue(value, weight))
  );
}

/** All references to a relation share its plan: counted anew for each, it would take as long as to build the statement. */
const inRepeatedSelection = memoizePerObject((selection: SelectPlan) => inSelection(selection, 1));
const inRepeatedFilters = memoizePerObject((selection: SelectPlan) =>
  sum(selection.where, (each) => inPredicate(each, 1)),
);

function inPredicate(where: WherePredicate, weight: Weight): number {
  switch (where.kind) {
    case "and":
    case "or":
      return sum(where.parts, (each) => inPredicate(each, weight));
    case "unmet":
      return inPredicate(where.condition, weight);
    case "exists": {
      const { selection, and } = where;
      // Groups are made of the whole selection.
      const isWhole = selection.having.length > 0 && and.length === 0;
      const repeated = isWhole ? inRepeatedSelection(selection) : inRepeatedFilters(selection);
      return weight + repeated + sum(and, (each) => inPredicate(each, weight));
    }
    case "found in document":
      return weight + sum(where.document, ({ value }) => inValue(value, weight));
    case "compare":
    case "in":
    case "is":
    case "distinct":
    case "search":
    case "presence":
      return weight + inValue(where.left, weight);
    case "position":
      return weight + sum(where.left, (each) => inValue(each, weight));
    case "same":
      // The join belongs to each reference, and is no filter.
      return 0;
    case "digest":
    case "found":
    case "permitted":
      return weight;
  }
}

function inValue(value: ValueExpression, weight: Weight): number {
  switch (value.kind) {
    case "column":
    case "one":
      return 0;
    case "json":
    case "represented":
    case "cast":
    case "distance":
      return inValue(value.of, weight);
    case "aggregate":
      return value.of === null ? 0 : inValue(value.of, weight);
    case "own value":
      return inValue(value.key, weight);
    case "count":
      return inRepeatedFilters(value.from);
    case "lookup":
    case "joined":
      return inValue(value.value, weight) + inRepeatedFilters(value.from);
    case "rank":
      return sum(value.document, (each) => inValue(each.value, weight));
    case "highlight":
      return sum(value.texts, (each) => inValue(each, weight));
    case "embedded":
      return weight === 0 ? inSelection(value.from, 0) : inRepeatedSelection(value.from);
  }
}

function sum<T>(all: readonly T[], count: (each: T) => number): number {
  return all.reduce((total, each) => total + count(each), 0);
}
