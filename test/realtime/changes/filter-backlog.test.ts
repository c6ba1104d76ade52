import { setImmediate as turn } from "node:timers/promises";
import { expect, test } from "vitest";
import { FilterBacklogs } from "../../../realtime/changes/filter-evaluation.ts";
import { endOfTransaction, type StreamPosition } from "../../../realtime/changes/subscriber.ts";
import { Listener } from "./stream-by-hand.ts";

const START = endOfTransaction(0n);

/** Batches that become ready on demand, and a record of their deliveries. */
function batches() {
  const result: number[] = [];
  const ends: PromiseWithResolvers<StreamPosition>[] = [];
  const next = (changes = 1, bytes = 1) => {
    const number = ends.length;
    const ready = Promise.withResolvers<StreamPosition>();
    ends.push(ready);
    const deliver = async () => void result.push(number);
    return { ready: ready.promise, deliver, changes, bytes };
  };
  const ready = async (number: number) => {
    ends[number]!.resolve(endOfTransaction(BigInt(number + 1)));
    await turn();
  };
  return {
    told: result,
    next,
    ready,
    fail: (number: number, reason: string) => ends[number]!.reject(new Error(reason)),
  };
}

test("batches are delivered in order, and the position follows them", async () => {
  const [backlogs, listener, { told: result, next, ready }] = [new FilterBacklogs(), new Listener(), batches()];
  for (let number = 0; number < 3; number++) backlogs.add(listener, START, next());
  await ready(1);
  expect([result, backlogs.positionOf(listener)]).toEqual([[], START]);
  await ready(0);
  expect([result, backlogs.positionOf(listener)]).toEqual([[0, 1], endOfTransaction(2n)]);
  const drained = backlogs.drained(listener);
  await ready(2);
  await drained;
  expect([result, backlogs.has(listener), backlogs.isEmpty]).toEqual([[0, 1, 2], false, true]);
});

test("when a batch fails the subscriber is sent the reason, and no later batch", async () => {
  const [backlogs, listener, { told: result, next, ready, fail }] = [new FilterBacklogs(), new Listener(), batches()];
  for (let number = 0; number < 2; number++) backlogs.add(listener, START, next());
  const drained = backlogs.drained(listener);
  fail(0, "too slow");
  await ready(1);
  await drained;
  expect([result, listener.lost, backlogs.has(listener)]).toEqual([[], "too slow", false]);
});

test("a subscriber that has left receives nothing", async () => {
  const [backlogs, listener, { told: result, next, ready }] = [new FilterBacklogs(), new Listener(), batches()];
  backlogs.add(listener, START, next());
  backlogs.remove(listener);
  await ready(0);
  expect([result, listener.lost]).toEqual([[], null]);
});

test.each([
  ["changes", [2_000, 1], [1, 1]],
  ["bytes", [1, 2 ** 23], [1, 1]],
])("a single batch may have any number of %s; a second one may not exceed the limit", (_what, first, second) => {
  const [backlogs, listener, { next }] = [new FilterBacklogs(), new Listener(), batches()];
  backlogs.add(listener, START, next(...first));
  expect(listener.lost).toBeNull();
  backlogs.add(listener, START, next(...second));
  expect(listener.lost).toBe("its filters are slower than changes come");
  expect(backlogs.isEmpty).toBe(true);
});

test("a new subscriber that is behind is waited for, and not again if that was in vain", async () => {
  const [backlogs, listener, { told: result, next, ready }] = [new FilterBacklogs(), new Listener(), batches()];
  for (let number = 0; number < 2; number++) backlogs.add(listener, START, next(400));
  const paced = backlogs.pace();
  await ready(0);
  await paced;
  expect(result).toEqual([0]);

  for (let number = 0; number < 2; number++) backlogs.add(listener, START, next(400));
  await backlogs.pace();
  const again = await Promise.race([backlogs.pace().then(() => "not waited for"), turn("waited for")]);
  expect([again, result, listener.lost]).toEqual(["not waited for", [0], null]);
});
