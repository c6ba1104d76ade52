import { expect, test } from "vitest";
import { LOAD_TESTS, PARTS } from "./long-runs.ts";
import { readRooms } from "./rooms.ts";
import { leftOut, testFiles } from "./test-groups.ts";

const inDefault = testFiles("default");

test("npm test leaves out only what its last line counts", () => {
  const counted = [...leftOut().values()].reduce((sum, count) => sum + count, 0);
  expect(counted).toBe(testFiles("all").length - inDefault.length);
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

test("the tests of programs that put a load on the service are left to the long runs", () => {
  expect(testFiles("named")).toEqual(expect.arrayContaining([...LOAD_TESTS]));
  expect(testFiles("all").filter((file) => LOAD_TESTS.includes(file))).toEqual([]);
  for (const file of LOAD_TESTS) expect(PARTS.load).toContain(file);
});
