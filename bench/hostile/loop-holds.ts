import { readFile } from "node:fs/promises";
import { join } from "node:path";

/** Shorter ones are not written. */
export const LEAST_HOLD_MS = 10;

/** What has node load the watch. */
export const LOOP_WATCH = ["--import", join(import.meta.dirname, "loop-watch.ts")];

/** How long the event loop was held at most since then, in milliseconds, by the file that the watch writes. */
export async function longestHold(file: string, since: number): Promise<number> {
  return Math.max(0, ...(await holdsSince(file, since)).map(({ held }) => held));
}

/** How long its thread ran of that: of this, other programs on a busy machine take nothing. */
export async function longestRun(file: string, since: number): Promise<number> {
  return Math.max(0, ...(await holdsSince(file, since)).map(({ held, ran }) => Math.min(held, ran)));
}

async function holdsSince(file: string, since: number) {
  const lines = (await readFile(file, "utf8").catch(() => "")).split("\n").filter((line) => line !== "");
  const holds = lines.map((line) => line.split(" ").map(Number) as [number, number, number]);
  return holds.filter(([at]) => at >= since).map(([, held, ran]) => ({ held, ran }));
}
