import { readFile } from "node:fs/promises";
import { join } from "node:path";

/** The minimum duration of a hold in the file. */
export const LEAST_HOLD_MS = 10;

/** The options with which node loads the watch. */
export const LOOP_WATCH = ["--import", join(import.meta.dirname, "loop-watch.ts")];

/** Returns the longest time in milliseconds for which the event loop was held since then, from the file of the watch. */
export async function longestHold(file: string, since: number): Promise<number> {
  return Math.max(0, ...(await holdsSince(file, since)).map(({ held }) => held));
}

/** Returns the longest time for which the thread ran during a hold; other programs on a busy machine do not affect this. */
export async function longestRun(file: string, since: number): Promise<number> {
  return Math.max(0, ...(await holdsSince(file, since)).map(({ held, ran }) => Math.min(held, ran)));
}

async function holdsSince(file: string, since: number) {
  const lines = (await readFile(file, "utf8").catch(() => "")).split("\n").filter((line) => line !== "");
  const holds = lines.map((line) => line.split(" ").map(Number) as [number, number, number]);
  return holds.filter(([at]) => at >= since).map(([, held, ran]) => ({ held, ran }));
}
