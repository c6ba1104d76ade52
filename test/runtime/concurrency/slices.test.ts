import { expect, test } from "vitest";
import { forEachInSlices } from "../../../runtime/concurrency/event-loop-sharing.ts";

test("long work yields to the event loop, and processes every item in order", async () => {
  let turns = 0;
  let isDone = false;
  const takeTurns = () => {
    turns++;
    if (!isDone) setImmediate(takeTurns);
  };
  setImmediate(takeTurns);
  const done: number[] = [];
  await forEachInSlices(
    Array.from({ length: 1000 }, (_, index) => index),
    (item) => {
      const until = performance.now() + 0.1;
      while (performance.now() < until);
      done.push(item);
    },
  );
  isDone = true;
  expect(done).toEqual(done.toSorted((a, b) => a - b));
  expect(done).toHaveLength(1000);
  expect(turns).toBeGreaterThan(3);
});
