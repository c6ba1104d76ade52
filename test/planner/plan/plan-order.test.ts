import { expect, test } from "vitest";
import type { SelectedColumn } from "../../../planner/intent/intent.ts";
import { aggregate, read, term } from "../intents.ts";
import { planIntent } from "../planner.ts";

const NAMES = Array.from({ length: 20 }, (_, index) => `highest_${index}`);

/** Plans an order by some of the names, and returns how often the selected columns were read. */
function countReads(ordered: readonly string[]): number {
  let reads = 0;
  const select = NAMES.map((alias): SelectedColumn => {
    const get = () => {
      reads++;
      return null;
    };
    return Object.defineProperty(aggregate("max", "year", { alias }), "cast", { enumerable: true, get });
  });
  const { rows } = planIntent(read("works", { select, order: ordered.map((name) => term(name)) }));
  expect(rows.order.map(({ value }) => value.kind)).toEqual(ordered.map(() => "aggregate"));
  return reads;
}

test("names of outputs in an order do not plan the select anew for each", () => {
  const reads = countReads(NAMES.slice(0, 1));
  expect(reads).toBeGreaterThanOrEqual(NAMES.length);
  expect(countReads(NAMES)).toBe(reads);
});

test("a name that two outputs have orders by the first", () => {
  const select = [aggregate("max", "year", { alias: "best" }), aggregate("min", "year", { alias: "best" })];
  const { rows } = planIntent(read("works", { select, order: [term("best")] }));
  expect(rows.order[0]!.value).toMatchObject({ kind: "aggregate", name: "max" });
});
