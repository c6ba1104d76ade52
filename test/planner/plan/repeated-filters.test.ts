import { describe, expect, test } from "vitest";
import type { ReadIntent, RowCondition, SelectItem } from "../../../planner/intent/intent.ts";
import { at, columns, eq, isNull, read, relation, remove, term } from "../intents.ts";
import { planIntent } from "../planner.ts";

const times = <T>(count: number, make: (index: number) => T): T[] => Array.from({ length: count }, (_, i) => make(i));
const anyOf = (conditions: RowCondition[]): RowCondition => ({ kind: "or", negated: false, conditions });
const filters = (path: string, count: number) => times(count, (index) => at(path, eq("id", String(index))));
const artist = relation("artists", columns("name"));
const refused = expect.objectContaining({
  kind: "invalid",
  code: "54001",
  message: "The request repeats the filters of related tables too often",
});

describe("a related table with 100 filters may be named 100 times, and not more often", () => {
  const related = (index: number): RowCondition => ({
    kind: "related",
    relation: "artists",
    negated: false,
    condition: eq("name", String(index)),
  });
  const countAbove = (index: number): RowCondition => ({
    kind: "related",
    relation: "works",
    negated: false,
    condition: eq("count", String(index)),
  });
  const select: SelectItem[] = [artist];
  const conditions = filters("artists", 100);
  const counted = (more: object) =>
    read("artists", { select: [relation("works", columns("id"))], conditions: filters("works", 100), ...more });

  test.each<[string, (count: number) => ReadIntent]>([
    [
      "in `or`",
      (count) => read("works", { select, conditions, where: [anyOf(times(count, () => isNull("artists")))] }),
    ],
    ["with further conditions", (count) => read("works", { select, conditions, where: times(count, related) })],
    [
      "in an order",
      (count) =>
        read("works", { select, conditions, order: times(count, () => term("name", { relation: "artists" })) }),
    ],
    ["in conditions on its count", (count) => counted({ where: times(count, countAbove) })],
    ["in orders by its count", (count) => counted({ order: times(count, () => term("works", { by: "count" })) })],
    [
      "within an embedded table",
      (count) =>
        read("artists", {
          select: [relation("works", [relation("artists", columns("id"))])],
          conditions: [
            ...filters("works.artists", 100),
            at("works", anyOf(times(count, () => isNull("artists", true)))),
          ],
        }),
    ],
  ])("%s", (_title, request) => {
    expect(() => planIntent(request(100))).not.toThrow();
    expect(() => planIntent(request(101))).toThrow(refused);
  });

  test("where the conditions choose rows to delete", () => {
    const request = (count: number) =>
      remove("works", { select, conditions, where: [anyOf(times(count, () => isNull("artists")))] });
    expect(() => planIntent(request(100))).not.toThrow();
    expect(() => planIntent(request(101))).toThrow(refused);
  });
});

test("tables that refer to one another multiply their filters, and are refused without building a statement", () => {
  const names = ["works", "artists", "works"];
  const select = names.reduceRight<SelectItem[]>((inner, name) => [relation(name, inner)], columns("id"));
  const conditions = names.flatMap((name, depth) =>
    times(100, () => at(names.slice(0, depth).join("."), isNull(name, true))),
  );
  expect(() => planIntent(read("artists", { select, conditions }))).toThrow(refused);
});

test("any number of filters may be written once", () => {
  expect(() => planIntent(read("works", { select: [artist], conditions: filters("", 10_001) }))).not.toThrow();
  expect(() => planIntent(read("works", { select: [artist], conditions: filters("artists", 10_001) }))).not.toThrow();
});
