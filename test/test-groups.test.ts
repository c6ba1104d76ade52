import { spawn } from "node:child_process";
import { once } from "node:events";
import { text } from "node:stream/consumers";
import { expect, test } from "vitest";
import { REPOSITORY } from "./repository.ts";
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

test("after a deadline no file runs, and all that are left out are listed", async () => {
  const settings = { ...process.env, TESTS: "pure", TESTS_UNTIL: "1" };
  const vitest = spawn("npx", ["vitest", "run"], { cwd: REPOSITORY, env: settings });
  const [printed] = await Promise.all([text(vitest.stdout), once(vitest, "exit")]);
  const pure = testFiles("pure");
  expect(vitest.exitCode).toBe(0);
  expect(printed).toContain(`Not run, because no time was left: ${pure.length} files.`);
  const listed = printed.split("\n").filter((line) => line.startsWith("  test/"));
  expect(listed.map((line) => line.trim()).sort()).toEqual([...pure].sort());
});
