import type { Stepwise } from "../../runtime/concurrency/event-loop-sharing.ts";

/** Returns the number of pauses that a computation makes. */
export function stepsOf(steps: Stepwise<unknown>): number {
  let count = 0;
  while (!steps.next().done) count++;
  return count;
}
