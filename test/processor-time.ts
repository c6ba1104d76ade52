import { readFileSync } from "node:fs";
import { afterAll, beforeAll } from "vitest";

declare module "vitest" {
  interface TaskMeta {
    /** Seconds that this file has had of a processor, itself and by the programs that it started and that have ended. */
    processor?: number;
  }
}

const TICKS_PER_SECOND = 100;
const FIRST_OF_THE_TIMES = 11;

/** The times of this process and of its ended children: `man 5 proc`, fields 14 to 17 of `stat`. */
function processorTime(): number {
  const fields = readFileSync("/proc/self/stat", "utf8").split(") ").at(-1)!.split(" ");
  const ticks = fields.slice(FIRST_OF_THE_TIMES, FIRST_OF_THE_TIMES + 4).map(Number);
  return ticks.reduce((sum, each) => sum + each, 0) / TICKS_PER_SECOND;
}

if (process.platform === "linux") {
  let before = 0;
  beforeAll(() => {
    before = processorTime();
  });
  // biome-ignore lint/correctness/noEmptyPattern: the names of the first parameter say which fixtures are wanted.
  afterAll(({}, file) => {
    file.meta.processor = processorTime() - before;
  });
}
