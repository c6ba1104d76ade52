// Kills all processes of a service each time that they have served for a second, while clients write.

import { readFile } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { ask } from "../ask.ts";
import { type Attack, failureOf, Outcomes, type Victim } from "../attack.ts";
import { credentials, HONEST_TOKEN, JSON_TYPE } from "../callers.ts";

/** Slightly longer than a start takes on a busy machine. */
const LONGEST_OUTAGE_MS = 10_000;
/** The maximum number of kills: after some, the service waits before it restarts workers. */
const MOST_KILLS = 8;
const PROBE_EVERY_MS = 20;
/** The time of service between kills; writes acknowledged in it are checked afterwards. */
const SERVING_MS = 1_000;
const WRITERS = 8;
const WRITE_EVERY_MS = 10;
const KEY = credentials(HONEST_TOKEN);

export const attack: Attack = async ({ victims: [victim] }) => {
  const outcomes = new Outcomes();
  const writes = new Writes(victim!, outcomes);
  const outages = await killAgainAndAgain(victim!, outcomes);
  await writes.end();
  const longest = Math.max(...outages);
  const { acknowledged, lost, twice } = await writes.compare();
  outcomes.state({
    what: `served again ${(longest / 1000).toFixed(1)} s after all workers were killed, at most`,
    isMet: longest < LONGEST_OUTAGE_MS,
    target: `below ${LONGEST_OUTAGE_MS / 1000}`,
  });
  outcomes.state({
    what: `of ${acknowledged} acknowledged writes lost: ${lost}`,
    isMet: lost === 0 && acknowledged > 0,
    target: "0",
  });
  outcomes.state({
    what: `of ${acknowledged} acknowledged writes made twice: ${twice}`,
    isMet: twice === 0,
    target: "0",
  });
  return outcomes.result;
};

/** Returns the duration of each outage in milliseconds. */
async function killAgainAndAgain(victim: Victim, outcomes: Outcomes): Promise<number[]> {
  const outages: number[] = [];
  for (let kills = 0; kills < MOST_KILLS; ) {
    await sleep(SERVING_MS);
    for (const pid of await workersOf(victim)) {
      process.kill(pid, "SIGKILL");
      outcomes.count("killed");
      kills++;
    }
    const killedAt = Date.now();
    await untilServed(victim, killedAt + LONGEST_OUTAGE_MS);
    const outageMs = Date.now() - killedAt;
    outcomes.count(`served after ${(outageMs / 1000).toFixed(0)} s`);
    outages.push(outageMs);
    if (outageMs >= LONGEST_OUTAGE_MS) break;
  }
  return outages;
}

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

/** Writes rows continuously, each once, with a unique number below zero. */
class Writes {
  readonly #url: string;
  readonly #outcomes: Outcomes;
  readonly #acknowledged = new Set<number>();
  readonly #writers: Promise<unknown>;
  #last = 0;
  #isOver = false;

  constructor({ url }: Victim, outcomes: Outcomes) {
    this.#url = `${url}/rest/v1/marks`;
    this.#outcomes = outcomes;
    this.#writers = Promise.all(Array.from({ length: WRITERS }, () => this.#write()));
  }

  async end(): Promise<void> {
    this.#isOver = true;
    await this.#writers;
  }

  /** Compares the acknowledged writes with the table. */
  async compare(): Promise<{ readonly acknowledged: number; readonly lost: number; readonly twice: number }> {
    const times = new Map<number, number>();
    // The client keeps only a part of a response, so a page has at most a hundred numbers.
    for (let before = 0; ; ) {
      const page = await ask(`${this.#url}?select=ref&ref=lt.${before}&order=ref.desc&limit=100`, { headers: KEY });
      const rows = JSON.parse(page.text) as readonly { readonly ref: number }[];
      if (rows.length === 0) break;
      for (const { ref } of rows) times.set(ref, (times.get(ref) ?? 0) + 1);
      before = rows.at(-1)!.ref;
    }
    const found = [...this.#acknowledged].map((ref) => times.get(ref) ?? 0);
    return {
      acknowledged: found.length,
      lost: found.filter((count) => count === 0).length,
      twice: found.filter((count) => count > 1).length,
    };
  }

  async #write(): Promise<void> {
    while (!this.#isOver) {
      const ref = --this.#last;
      const body = JSON.stringify({ ref, note: "written while workers are killed" });
      const sent = ask(this.#url, { method: "POST", headers: { ...KEY, ...JSON_TYPE }, body });
      const outcome = await sent.then(({ status }) => String(status), failureOf);
      if (outcome === "201") this.#acknowledged.add(ref);
      this.#outcomes.count(`write: ${outcome}`);
      await sleep(WRITE_EVERY_MS);
    }
  }
}
