import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { MOST_SECONDS, overTime, recordedDurations } from "./durations.ts";
import { REPOSITORY } from "./repository.ts";
import { testFiles } from "./test-groups.ts";

const { runs, files } = recordedDurations;

test("the record names no file that is gone", () => {
  const existing = new Set(testFiles("named"));
  expect([...files.keys()].filter((file) => !existing.has(file))).toEqual([]);
});

test("the README says how long the record was", async () => {
  const readme = await readFile(join(REPOSITORY, "README.md"), "utf8");
  const minutesOf = (command: string) => Number(new RegExp(`^npm ${command} .*?(\\d+) minutes`, "m").exec(readme)?.[1]);
  expect(minutesOf("test")).toBe(Math.ceil(runs.default!.minutes));
  expect(minutesOf("run test:all")).toBe(Math.ceil(runs.all!.minutes));
});

test("a file that takes longer than its group may is named", () => {
  const short = { wall: 0, processor: MOST_SECONDS.short };
  const long = { wall: 0, processor: MOST_SECONDS.short + 1 };
  const measured = new Map([
    ["test/new.test.ts", long],
    ["test/other.test.ts", short],
  ]);
  expect(overTime(measured)).toEqual([
    `test/new.test.ts took ${long.processor} s of a processor, and a file of its group may take ${MOST_SECONDS.short} s.`,
  ]);
});
