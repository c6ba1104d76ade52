import { setTimeout as sleep } from "node:timers/promises";

const SHORTEST_PAUSE_MS = 5;
const LONGEST_PAUSE_MS = 40;

/** Waits for the condition, not for the clock: the only limit of tests ends a wait for one that never holds. */
export async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  const start = performance.now();
  for (;;) {
    const answer = condition();
    if (await answer) return;
    // A process that is asked again and again is slower to get there. A look at a variable costs nothing.
    const isAsked = typeof answer !== "boolean";
    await sleep(
      isAsked ? Math.min(LONGEST_PAUSE_MS, SHORTEST_PAUSE_MS + (performance.now() - start) / 20) : SHORTEST_PAUSE_MS,
    );
  }
}
