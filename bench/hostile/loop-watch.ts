// The service loads this before its program. It writes each hold of the event loop into the file that LOOP_WATCH_FILE
// names, and the time for which it ran during the hold. It omits time in which it was ready to run while others had the processors,
// but includes the time in which it waited for the threads that collect garbage with it.

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

/** Returns the milliseconds for which this thread ran, and waited for a processor; if the system does not say, it always ran. */
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
