import { afterAll, beforeAll } from "vitest";
import { processorTimeOf } from "../bench/measuring/processor-time.ts";

declare module "vitest" {
  interface TaskMeta {
    /** Seconds that this file has had of a processor, itself and by the programs that it started. Not without /proc. */
    processor?: number;
  }
}

let before: number | null = null;
beforeAll(async () => {
  before = await processorTimeOf(process.pid);
});
// biome-ignore lint/correctness/noEmptyPattern: the names of the first parameter say which fixtures are wanted.
afterAll(async ({}, file) => {
  const after = await processorTimeOf(process.pid);
  if (before !== null && after !== null) file.meta.processor = (after - before) / 1e6;
});
