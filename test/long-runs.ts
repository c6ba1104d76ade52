import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { REPOSITORY } from "./repository.ts";

export type LongRun = {
  readonly passed: boolean;
  readonly date: string;
  readonly minutes: number;
  readonly cores: number;
};

/** The files that only `npm run test:long` runs: their programs need minutes to tell anything. */
export const LOAD_TESTS: readonly string[] = [
  "test/bench/failover.test.ts",
  "test/bench/hostile.test.ts",
  "test/bench/soak.test.ts",
];

/** The command of each part. */
export const PARTS: Readonly<Record<string, string>> = {
  majors: ".ci/majors 14 15 16 17",
  statements: "CALLER_SETTINGS=statements npm run test:all -- test/rest-gateway/table/ test/graphql/ test/journeys/",
  properties: "PROPERTY_RUNS=1 npm run test:all",
  load: `npm run test:all -- ${LOAD_TESTS.join(" ")}`,
  faults: "npm run bench -- faults",
  hostile: "npm run bench -- hostile",
  soak: "npm run bench -- soak --minutes 30",
  failover: "npm run bench -- failover --minutes 30",
};

const RECORD = join(REPOSITORY, "test/long-runs.json");

/** The last run of each part. */
export function longRuns(): Readonly<Record<string, LongRun>> {
  return existsSync(RECORD) ? JSON.parse(readFileSync(RECORD, "utf8")) : {};
}

export function writeLongRuns(runs: Readonly<Record<string, LongRun>>): void {
  writeFileSync(RECORD, `${JSON.stringify(runs, null, 2)}\n`);
}
