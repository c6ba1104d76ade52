// The process of a user that calls functions beside an attack.

import { setTimeout as sleep } from "node:timers/promises";
import { ask } from "./ask.ts";
import { failureOf } from "./attack.ts";
import { HONEST_TOKEN } from "./callers.ts";

export type HonestFunctionCalls = {
  readonly url: string;
  readonly names: readonly string[];
  /** The end time by `Date.now()`. */
  readonly until: number;
};

export type FunctionSamples = {
  readonly milliseconds: readonly number[];
  /** The statuses, or the reasons why there was no response. */
  readonly failures: readonly string[];
};

const PAUSE_MS = 100;

process.on("message", async ({ url, names, until }: HonestFunctionCalls) => {
  const milliseconds: number[] = [];
  const failures: string[] = [];
  for (let index = 0; Date.now() < until; index++) {
    const startedAt = performance.now();
    const status = await call(`${url}/functions/v1/${names[index % names.length]}`);
    if (status === "200") milliseconds.push(performance.now() - startedAt);
    else failures.push(status);
    await sleep(PAUSE_MS);
  }
  process.send!({ milliseconds, failures });
});

process.on("disconnect", () => process.exit());

async function call(url: string): Promise<string> {
  try {
    const headers = { Authorization: `Bearer ${HONEST_TOKEN}` };
    return String((await ask(url, { method: "POST", headers, body: "abc" })).status);
  } catch (error) {
    return failureOf(error);
  }
}
