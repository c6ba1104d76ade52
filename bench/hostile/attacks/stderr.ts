// Causes log lines that nobody reads: on a full device, and in a full pipe.

import { ask } from "../ask.ts";
import { type Attack, failureOf, Outcomes, repeat } from "../attack.ts";

/** The number of concurrent callers of each service. */
const CALLERS = 8;
const LIVE_WITHIN_MS = 5_000;
/** The path makes each log line long, so that a pipe is full soon. */
const PATH = `/nowhere-${"x".repeat(4_000)}`;

export const attack: Attack = async (target) => {
  const outcomes = new Outcomes();
  const { victims } = target;
  await repeat(target, { times: CALLERS * victims.length, pauseMs: 5 }, async (index) => {
    const { url } = victims[index % victims.length]!;
    const outcome = ask(url + PATH, { timeoutMs: LIVE_WITHIN_MS }).then(({ status }) => String(status), failureOf);
    outcomes.count(await outcome);
  });
  for (const [index, { url }] of victims.entries()) {
    const alive = await ask(`${url}/health/live`, { timeoutMs: LIVE_WITHIN_MS }).catch(() => null);
    if (alive?.status !== 200) outcomes.fault(`a service does not live with its stderr ${VICTIMS[index]}`);
  }
  return outcomes.result;
};

/** The descriptions of the victims, in order. */
const VICTIMS = ["on a full device", "in a pipe that nobody reads"] as const;
