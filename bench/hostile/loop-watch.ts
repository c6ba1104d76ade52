// Loaded by the service ahead of its program: writes each time that the event loop was held into the file that
// LOOP_WATCH_FILE names. Time in which the thread was ready to run while others had the processors is left out.

import { appendFileSync, openSync, readSync } from "node:fs";
import { isMainThread } from "node:worker_threads";
import { LEAST_HOLD_MS } from "./loop-holds.ts";

const TICK_MS = 5;

if (isMainThread) watch(process.env.LOOP_WATCH_FILE!);

function watch(file: string): void {
  const waited = waitingClock();
  let at = performance.now();
  let waitedBefore = waited();
  const look = () => {
    const now = performance.now();
    const waitedNow = waited();
    const held = now - at - TICK_MS - (waitedNow - waitedBefore);
    at = now;
    waitedBefore = waitedNow;
    if (held >= LEAST_HOLD_MS) appendFileSync(file, `${Date.now()} ${held.toFixed(1)}\n`);
  };
  setInterval(look, TICK_MS).unref();
}

/** Milliseconds for which this thread was ready and had to wait for a processor; 0 where the system does not say. */
function waitingClock(): () => number {
  const buffer = Buffer.alloc(128);
  try {
    const statistics = openSync(`/proc/self/task/${process.pid}/schedstat`, "r");
    return () => Number(buffer.toString("latin1", 0, readSync(statistics, buffer, 0, 128, 0)).split(" ")[1]) / 1e6;
  } catch {
    return () => 0;
  }
}
