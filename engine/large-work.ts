import { setTimeout as sleep, setImmediate as turnOver } from "node:timers/promises";
import { Turns } from "./turns.ts";

const PAUSE_TIMES = 2;
/** A turn of the event loop in which much else happened is not waited for longer. */
const LONGEST_PAUSE_MS = 100;

/** There is but one event loop to share. */
const turns = new Turns(1);

/**
 * Resolves when the caller may do something that holds the event loop for some milliseconds and cannot be interrupted. One
 * such piece is done in a turn of the event loop, and the next one after a pause twice as long as that turn was: so large work of any
 * kind takes at most a third of the processor. The owners of what waits are served in rotation.
 */
export function turnForLargeWork(owner: object | string): Promise<void> {
  return new Promise((resolve) => {
    void turns.take(owner, async () => {
      const startedAt = performance.now();
      resolve();
      await turnOver();
      await sleep(Math.min(PAUSE_TIMES * (performance.now() - startedAt), LONGEST_PAUSE_MS));
    });
  });
}
