import { setImmediate as turn } from "node:timers/promises";
import { expect, test } from "vitest";
import { waitForLargeWorkSlot } from "../../../engine/concurrency/event-loop-sharing.ts";

const WORK_MS = 10;

function hold(): void {
  const end = performance.now() + WORK_MS;
  while (performance.now() < end);
}

test("one piece of large work runs in a turn of the event loop, and then others have twice as much time", async () => {
  const begun: number[] = [];
  const all = Array.from({ length: 5 }, async () => {
    await waitForLargeWorkSlot("anybody");
    begun.push(performance.now());
    hold();
  });
  while (begun.length < all.length) {
    const before = begun.length;
    await turn();
    expect(begun.length - before).toBeLessThanOrEqual(1);
  }
  await Promise.all(all);
  for (const [index, at] of begun.slice(1).entries())
    expect(at - begun[index]!).toBeGreaterThanOrEqual(3 * WORK_MS - 2);
});

test("large work of one owner runs before the second piece of another one", async () => {
  const order: string[] = [];
  const work = async (owner: string) => {
    await waitForLargeWorkSlot(owner);
    order.push(owner);
    hold();
  };
  await Promise.all([...Array.from({ length: 4 }, () => work("many")), work("one")]);
  expect(order.indexOf("one")).toBeLessThanOrEqual(2);
});
