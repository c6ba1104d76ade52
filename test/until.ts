import { setTimeout as sleep } from "node:timers/promises";

/** Waits for the condition, not for the clock: what never comes to be is ended by the only limit that tests have. */
export async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await condition())) await sleep(5);
}
