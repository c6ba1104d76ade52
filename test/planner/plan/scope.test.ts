import { expect, test } from "vitest";
import { chooseAlias } from "../../../planner/plan/scope.ts";

test("a relation has the alias of its name and depth, as in PostgREST", () => {
  expect(chooseAlias("films", 0, new Set())).toBe("films");
  expect(chooseAlias("films", 2, new Set())).toBe("films_2");
});

test("nested selections have different aliases", () => {
  expect(chooseAlias("films", 1, new Set(["films_1"]))).toBe("films_1_2");
  expect(chooseAlias("films", 1, new Set(["films_1", "films_1_2"]))).toBe("films_1_3");
});

test("an alias stays unique although Postgres would truncate it", () => {
  const long = "x".repeat(63);
  const first = chooseAlias(long, 1, new Set([long]));
  expect(Buffer.byteLength(first)).toBe(63);
  expect(first.endsWith("_1")).toBe(true);
  expect(chooseAlias(long, 1, new Set([first]))).not.toBe(first);
  expect(Buffer.byteLength(chooseAlias("★".repeat(21), 1, new Set()))).toBeLessThanOrEqual(63);
});
