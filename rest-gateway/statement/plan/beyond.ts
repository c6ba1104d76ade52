import type { Expression, PositionOperand, Where } from "./selection.ts";

/** One of the values that rows are ordered by, and that of the row at which the page before ended. */
export type Step = {
  readonly value: Expression;
  readonly descending: boolean;
  readonly nullsLast: boolean;
  readonly nullable: boolean;
  /** Null where the row had none. */
  readonly operand: PositionOperand | null;
};

/**
 * The ways in which a row can come after the position, of which each row takes one at most. Each way is one range of an
 * index that has the same order: so none begins to read at the first row.
 */
export function waysBeyond(steps: readonly Step[]): readonly (readonly Where[])[] {
  const [first] = steps;
  if (!first) return [];
  if (first.operand === null) {
    const alsoNull = waysBeyond(steps.slice(1)).map((way) => [absent(first), ...way]);
    return first.nullsLast ? alsoNull : [[{ kind: "presence", left: first.value, present: true }], ...alsoNull];
  }
  const run = leadingRun(steps);
  const onwards = compare(first.descending ? "lt" : "gt", run);
  const atNull = run.flatMap((step, index) =>
    step.nullable && step.nullsLast ? [[...equal(run.slice(0, index)), absent(step)]] : [],
  );
  const further = waysBeyond(steps.slice(run.length)).map((way) => [...equal(run), ...way]);
  return [[onwards], ...atNull, ...further];
}

/** Those that one comparison of rows can decide: they have a value each, and go the same way. */
function leadingRun(steps: readonly Step[]): readonly Step[] {
  const end = steps.findIndex(({ operand, descending }) => operand === null || descending !== steps[0]!.descending);
  return end < 0 ? steps : steps.slice(0, end);
}

function equal(run: readonly Step[]): Where[] {
  return run.length > 0 ? [compare("eq", run)] : [];
}

function compare(operator: "eq" | "gt" | "lt", run: readonly Step[]): Where {
  return {
    kind: "position",
    left: run.map(({ value }) => value),
    operator,
    right: run.map(({ operand }) => operand!),
  };
}

function absent({ value: left }: Step): Where {
  return { kind: "presence", left, present: false };
}
