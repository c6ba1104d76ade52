import type { Stepwise } from "../../runtime/concurrency/stepwise.ts";

/** Returns the number of pauses that a computation makes. */
export function stepsOf(steps: Stepwise<unknown>): number {
  let count = 0;
  while (!steps.next().done) count++;
  return count;
}
