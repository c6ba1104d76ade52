import { describe, expect, test } from "vitest";
import { suggestName } from "../../../planner/plan/find-target.ts";

const TABLES = ["directors", "roles", "actors", "films", "film_sets", "naïve"];
const anything = () => true;

describe("the nearest name", () => {
  test.each([
    ["film", "films"],
    ["role", "roles"],
    ["Directors", "directors"],
    ["direcotrs", "directors"],
    ["filmsets", "film_sets"],
    ["naive", "naïve"],
    ["direct", null],
    ["noclosealternative", null],
    ["", null],
  ])("to %j is %j", (name, expected) => {
    expect(suggestName(name, TABLES, { minSimilarity: 0.75, mayName: anything })).toBe(expected);
  });

  test("may be less similar if the caller allows it", () => {
    expect(suggestName("direct", TABLES, { minSimilarity: 0.33, mayName: anything })).toBe("directors");
  });

  test("is never a hidden one, even on an exact match", () => {
    const mayName = (known: string) => known !== "films";
    expect(suggestName("film", TABLES, { minSimilarity: 0.33, mayName })).toBe("film_sets");
    expect(suggestName("films", ["films"], { minSimilarity: 0.33, mayName })).toBeNull();
  });

  test("is not computed for a name that is longer than any name or list of parameters", () => {
    const long = (length: number) =>
      suggestName("a".repeat(length), ["a".repeat(length - 1)], { minSimilarity: 0.33, mayName: anything });
    expect([long(1_000), long(1_001)]).toEqual(["a".repeat(999), null]);
  });

  test("is not computed among very many", () => {
    const many = Array.from({ length: 501 }, (_, index) => `films_${index}`);
    expect(suggestName("films_50x", many, { minSimilarity: 0.33, mayName: anything })).toBeNull();
    expect(suggestName("films_50x", many.slice(1), { minSimilarity: 0.33, mayName: anything })).toMatch(/^films_50/);
  });
});
