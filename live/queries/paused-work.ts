import { setTimeout as sleep } from "node:timers/promises";

const SLICE_MS = 4;
/** The length of a pause, as a multiple of the work's time: the pause leaves the event loop to others. */
const PAUSE_FACTOR = 2;
/** Shorter work needs no pause. */
const LEAST_WORK_MS = 1;

/** Does the work for one item after the other, with pauses. */
export async function workWithPauses<Item>(items: Iterable<Item>, work: (item: Item) => void): Promise<void> {
  let startedAt = performance.now();
  for (const item of items) {
    work(item);
    const milliseconds = performance.now() - startedAt;
    if (milliseconds < SLICE_MS) continue;
    await sleep(PAUSE_FACTOR * milliseconds);
    startedAt = performance.now();
  }
  const milliseconds = performance.now() - startedAt;
  if (milliseconds >= LEAST_WORK_MS) await sleep(PAUSE_FACTOR * milliseconds);
}
