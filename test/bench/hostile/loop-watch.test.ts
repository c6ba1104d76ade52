import { execFile } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, onTestFinished, test } from "vitest";
import { LOOP_WATCH, longestHold, longestRun } from "../../../bench/hostile/loop-holds.ts";

const HOLD_MS = 300;
/** Waits without work before and after the work that holds the loop. */
const PROGRAM = `
  const idle = () => new Promise((resolve) => setTimeout(resolve, 100));
  await idle();
  for (const { user: used } = process.cpuUsage(); process.cpuUsage().user - used < ${HOLD_MS * 1_000}; );
  await idle();`;

test("the watch in a program records how long its event loop was blocked, and when", async () => {
  const folder = await mkdtemp(join(tmpdir(), "loop-watch-"));
  onTestFinished(() => rm(folder, { recursive: true }));
  const file = join(folder, "holds");
  const startedAt = Date.now();
  await promisify(execFile)(process.execPath, [...LOOP_WATCH, "--input-type=module", "--eval", PROGRAM], {
    env: { ...process.env, LOOP_WATCH_FILE: file },
  });
  const held = await longestHold(file, startedAt);
  expect(held).toBeGreaterThan(HOLD_MS / 2);
  expect(await longestRun(file, startedAt)).toBeGreaterThan(HOLD_MS / 2);
  expect(await longestRun(file, startedAt)).toBeLessThanOrEqual(held);
  expect(await longestHold(file, Date.now() + 1)).toBe(0);
});
