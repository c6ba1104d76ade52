import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { REPOSITORY } from "./repository.ts";

export type LongRun = {
  readonly passed: boolean;
  readonly date: string;
  readonly minutes: number;
  readonly cores: number;
};

/** The command of each part. */
export const PARTS: Readonly<Record<string, string>> = {
  majors: ".ci/majors 14 15 16 17",
  properties: "PROPERTY_RUNS=1 npm run test:all",
  faults: "npm run bench -- faults",
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
