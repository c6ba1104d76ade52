// A service of several processes, all of which are killed as soon as they serve again.

import { readFile } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { ask } from "../ask.ts";
import { type Attack, Outcomes, type Victim } from "../attack.ts";

/** As long as a start takes on a busy machine, and not much more. */
const LONGEST_OUTAGE_MS = 10_000;
const MOST_KILLS = 8;
const PROBE_EVERY_MS = 20;

/** Goes on when the others have stopped: only after some kills does the service wait before it starts workers again. */
export const attack: Attack = async ({ victims }) => {
  const outcomes = new Outcomes();
  const [victim] = victims;
  for (let kills = 0; kills < MOST_KILLS; ) {
    for (const pid of await workersOf(victim!)) {
      process.kill(pid, "SIGKILL");
      outcomes.count("killed");
      kills++;
    }
    const killedAt = Date.now();
    await untilServed(victim!, killedAt + LONGEST_OUTAGE_MS);
    const outageMs = Date.now() - killedAt;
    outcomes.count(`served after ${(outageMs / 1000).toFixed(0)} s`);
    if (outageMs >= LONGEST_OUTAGE_MS) {
      outcomes.fault(`nobody serves ${LONGEST_OUTAGE_MS / 1000} s after ${kills} worker kills`);
      break;
    }
  }
  return outcomes.result;
};

async function workersOf({ pid }: Victim): Promise<number[]> {
  const children = await readFile(`/proc/${pid}/task/${pid}/children`, "utf8");
  return children
    .split(" ")
    .filter((child) => child !== "")
    .map(Number);
}

async function untilServed({ url }: Victim, latest: number): Promise<void> {
  while (Date.now() < latest) {
    const { status } = await ask(`${url}/health/live`, { timeoutMs: 1_000 }).catch(() => ({ status: 0 }));
    if (status === 200) return;
    await sleep(PROBE_EVERY_MS);
  }
}
