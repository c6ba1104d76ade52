import fc from "fast-check";
import { expect, test } from "vitest";
import { FifoQueue } from "../../../runtime/concurrency/fifo-queue.ts";
import { collectGarbage } from "../../../runtime/memory/collect-garbage.ts";

test("a queue behaves as an array from which the first element is taken", () => {
  const step = fc.oneof(fc.constant("shift" as const), fc.nat({ max: 20 }), fc.record({ remove: fc.nat({ max: 20 }) }));
  fc.assert(
    fc.property(fc.array(step, { maxLength: 200 }), (steps) => {
      const line = new FifoQueue<number>();
      let model: number[] = [];
      for (const action of steps) {
        if (action === "shift") expect(line.shift()).toBe(model.shift());
        else if (typeof action === "number") {
          line.push(action);
          model.push(action);
        } else {
          line.remove(action.remove);
          model = model.filter((item) => item !== action.remove);
        }
        expect(line.toArray()).toEqual(model);
        expect([line.length, line.first()]).toEqual([model.length, model[0]]);
      }
    }),
  );
});

test("a queue from which everything was taken is empty, and can be used again", () => {
  const queue = new FifoQueue<number>();
  for (let item = 0; item < 100; item++) queue.push(item);
  expect(queue.takeAll()).toEqual(Array.from({ length: 100 }, (_, item) => item));
  expect([queue.length, queue.first(), queue.shift()]).toEqual([0, undefined, undefined]);
  queue.push(7);
  expect(queue.toArray()).toEqual([7]);
});

test("a long queue keeps its order", () => {
  const line = new FifoQueue<number>();
  for (let item = 0; item < 5_000; item++) line.push(item);
  expect(Array.from({ length: 5_000 }, () => line.shift())).toEqual(Array.from({ length: 5_000 }, (_, item) => item));
  expect(line.length).toBe(0);
});

test("a queue that is never empty does not keep what it has returned in memory", () => {
  const queue = new FifoQueue<object>();
  const returned: WeakRef<object>[] = [];
  const pass = () => {
    queue.push({});
    if (queue.length > 1) returned.push(new WeakRef(queue.shift()!));
  };
  for (let item = 0; item < 500; item++) pass();
  return expect
    .poll(() => {
      collectGarbage();
      return returned.every((reference) => reference.deref() === undefined);
    })
    .toBe(true);
});
