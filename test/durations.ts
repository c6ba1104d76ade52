import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { REPOSITORY } from "./repository.ts";

/** The seconds that a test file took, and for which processors worked for it, without Postgres. */
export type Duration = { readonly wall: number; readonly processor: number };

export type DurationRecord = {
  /** The minutes of `npm test` and of `npm run test:all`, and the cores of that machine. */
  readonly runs: Readonly<Record<string, { readonly minutes: number; readonly cores: number }>>;
  readonly files: ReadonlyMap<string, Duration>;
};

const RECORD = join(REPOSITORY, "test/durations.json");

/** A file that takes longer is left to `npm run test:all`. */
const SECONDS_OF_A_SHORT_FILE = 3;

/** The seconds of a processor, in a run beside others, after which a file is in the wrong group, or must be divided. */
export const MOST_SECONDS = { short: 5 * SECONDS_OF_A_SHORT_FILE, long: 240 };

/** The durations that `npm run test:record` has measured. A new file has none, and counts as a short one. */
export const recordedDurations = readRecord();

function readRecord(): DurationRecord {
  if (!existsSync(RECORD)) return { runs: {}, files: new Map() };
  const { runs, files } = JSON.parse(readFileSync(RECORD, "utf8")) as {
    readonly runs: DurationRecord["runs"];
    readonly files: Readonly<Record<string, readonly [number, number]>>;
  };
  const durations = Object.entries(files).map(([file, [wall, processor]]) => [file, { wall, processor }] as const);
  return { runs, files: new Map(durations) };
}

/** Writes one line a file, so that a change of the record can be read. */
export function writeRecord({ runs, files }: DurationRecord): void {
  const lines = [...files]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([file, { wall, processor }]) => `    ${JSON.stringify(file)}: [${wall}, ${processor}]`);
  const listedRuns = Object.entries(runs).map(
    ([group, run]) => `    ${JSON.stringify(group)}: { "minutes": ${run.minutes}, "cores": ${run.cores} }`,
  );
  writeFileSync(
    RECORD,
    `{\n  "runs": {\n${listedRuns.join(",\n")}\n  },\n  "files": {\n${lines.join(",\n")}\n  }\n}\n`,
  );
}

export function secondsOf(file: string): number {
  return recordedDurations.files.get(file)?.wall ?? 0;
}

export function isShort(file: string): boolean {
  return secondsOf(file) <= SECONDS_OF_A_SHORT_FILE;
}

/** Says of each file that took longer than its group may. */
export function overTime(measured: ReadonlyMap<string, Duration>): readonly string[] {
  return [...measured].flatMap(([file, { processor }]) => {
    const most = isShort(file) ? MOST_SECONDS.short : MOST_SECONDS.long;
    if (processor <= most) return [];
    return [`${file} took ${processor} s of a processor, and a file of its group may take ${most} s.`];
  });
}
