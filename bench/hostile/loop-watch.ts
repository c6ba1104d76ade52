// Loaded by the service ahead of its program: writes each time that the event loop was held into the file that
// LOOP_WATCH_FILE names, and for how long of that it ran. Time in which it was ready to run while others had the processors
// is left out; that in which it waited for the threads that collect garbage with it is not, whoever had the processors.

import { appendFileSync, openSync, readSync } from "node:fs";
import { isMainThread } from "node:worker_threads";
import { LEAST_HOLD_MS } from "./loop-holds.ts";

const TICK_MS = 5;

if (isMainThread) watch(process.env.LOOP_WATCH_FILE!);

function watch(file: string): void {
  const read = threadClock();
  let at = performance.now();
  let before = read();
  const look = () => {
    const now = performance.now();
    const clock = read();
    const held = now - at - TICK_MS - (clock.waited - before.waited);
    const ran = clock.ran - before.ran;
    at = now;
    before = clock;
    if (held >= LEAST_HOLD_MS) appendFileSync(file, `${Date.now()} ${held.toFixed(1)} ${ran.toFixed(1)}\n`);
  };
  setInterval(look, TICK_MS).unref();
}

type ThreadClock = { readonly ran: number; readonly waited: number };

/** Milliseconds for which this thread ran, and was ready to and had to wait for a processor; it always ran where the system does not say. */
function threadClock(): () => ThreadClock {
  const buffer = Buffer.alloc(128);
  try {
    const statistics = openSync(`/proc/self/task/${process.pid}/schedstat`, "r");
    return () => {
      const [ran, waited] = buffer.toString("latin1", 0, readSync(statistics, buffer, 0, 128, 0)).split(" ");
      return { ran: Number(ran) / 1e6, waited: Number(waited) / 1e6 };
    };
  } catch {
    return () => ({ ran: performance.now(), waited: 0 });
  }
}
