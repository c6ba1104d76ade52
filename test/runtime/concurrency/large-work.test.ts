import { setImmediate as turn } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import { runLongWork, waitForLargeWorkSlot } from "../../../runtime/concurrency/event-loop-sharing.ts";
import type { Stepwise } from "../../../runtime/concurrency/stepwise.ts";

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

describe("long work in slices", () => {
  const notes: string[] = [];
  function* work(name: string, steps: number): Stepwise<string> {
    for (let step = 0; step < steps; step++) {
      notes.push(name);
      const end = performance.now() + 3;
      while (performance.now() < end);
      yield;
    }
    return name;
  }

  test("is done at once if it does not yield", () => {
    expect(runLongWork("one", work("short", 0))).toBe("short");
  });

  test("is one piece at a time, of the owners in rotation", async () => {
    const all = [
      runLongWork("one", work("a", 3)),
      runLongWork("one", work("b", 3)),
      runLongWork("one", work("c", 3)),
      runLongWork("other", work("d", 3)),
    ];
    expect(await Promise.all(all)).toEqual(["a", "b", "c", "d"]);
    // Each has done its first step at once.
    expect(notes.join("")).toBe("aabcdabbddcc");
  });
});
