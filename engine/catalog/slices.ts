import { setImmediate as nextTurn } from "node:timers/promises";

const SLICE_MS = 8;
const ITEMS_BETWEEN_LOOKS = 64;

/** Goes through the items and lets requests in between: a large schema must not hold the event loop. */
export async function inSlices<Item>(items: Iterable<Item>, work: (item: Item) => void): Promise<void> {
  let pauseAt = performance.now() + SLICE_MS;
  let count = 0;
  for (const item of items) {
    work(item);
    if (++count % ITEMS_BETWEEN_LOOKS === 0 && performance.now() > pauseAt) {
      await nextTurn();
      pauseAt = performance.now() + SLICE_MS;
    }
  }
}
