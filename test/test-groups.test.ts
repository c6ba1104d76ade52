import { globSync } from "node:fs";
import { expect, test } from "vitest";
import { REPOSITORY } from "./repository.ts";
import { readRooms } from "./rooms.ts";
import { LONG_TESTS, leftOut, testFiles } from "./test-groups.ts";

const inDefault = testFiles("default");

test("npm test leaves out only what its last lines count", () => {
  const counted = [...leftOut().values()].reduce((sum, count) => sum + count, 0);
  expect(counted).toBe(testFiles("all").length - inDefault.length);
});

test("no entry of the long tests is out of date", () => {
  const globs = LONG_TESTS.flatMap(({ files, except = [] }) => [...files, ...except]);
  expect(globs.filter((glob) => globSync(glob, { cwd: REPOSITORY }).length === 0)).toEqual([]);
});

test("npm test covers every room but the benchmarks", () => {
  const rooms = readRooms().filter(({ folder }) => folder !== "bench");
  expect(rooms.length).toBeGreaterThan(20);
  const untested = rooms.filter(({ folder }) => !inDefault.some((file) => file.startsWith(`test/${folder}/`)));
  expect(untested.map(({ folder }) => folder)).toEqual([]);
});

test("a test of text alone is pure, one with a database is not", () => {
  const pure = testFiles("pure");
  expect(pure).toContain("test/runtime/edit-distance.test.ts");
  expect(pure).not.toContain("test/rest-gateway/table/errors.test.ts");
});
