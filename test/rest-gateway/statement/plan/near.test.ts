import { describe, expect, test } from "vitest";
import { nearest } from "../../../../rest-gateway/statement/plan/near.ts";

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
    expect(nearest(name, TABLES, { least: 0.75, mayName: anything })).toBe(expected);
  });

  test("may be less alike where that is enough", () => {
    expect(nearest("direct", TABLES, { least: 0.33, mayName: anything })).toBe("directors");
  });

  test("is never one that may not be named, even when that one is the very name", () => {
    const mayName = (known: string) => known !== "films";
    expect(nearest("film", TABLES, { least: 0.33, mayName })).toBe("film_sets");
    expect(nearest("films", ["films"], { least: 0.33, mayName })).toBeNull();
  });

  test("is not looked for among very many", () => {
    const many = Array.from({ length: 501 }, (_, index) => `films_${index}`);
    expect(nearest("films_50x", many, { least: 0.33, mayName: anything })).toBeNull();
    expect(nearest("films_50x", many.slice(1), { least: 0.33, mayName: anything })).toMatch(/^films_50/);
  });
});
