import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { ConnectionQueue } from "../../../postgres/database/fair-sharing.ts";

type Item = { readonly caller: string; readonly kind: object; readonly id: number };

const KINDS = [{}, {}, {}];
const item = (caller: string, id: number, kind = KINDS[0]!): Item => ({ caller, kind, id });

function queueOf(items: readonly Item[]): ConnectionQueue<Item> {
  const queue = new ConnectionQueue<Item>();
  for (const each of items) queue.push(each);
  return queue;
}

function serveAll(queue: ConnectionQueue<Item>, isServable: (item: Item) => boolean = () => true): number[] {
  const served: number[] = [];
  for (let next = queue.find(isServable); next; next = queue.find(isServable)) {
    queue.serve(next);
    served.push(next.id);
  }
  return served;
}

describe("a fair queue", () => {
  test("serves a single caller's statements of one class in their order", () => {
    const queue = queueOf([1, 2, 3].map((id) => item("ada", id)));
    expect(serveAll(queue)).toEqual([1, 2, 3]);
    expect(queue.length).toBe(0);
  });

  test("alternates between callers, however many statements one of them has", () => {
    const queue = queueOf([item("ada", 1), item("ada", 2), item("ada", 3), item("bob", 4), item("eve", 5)]);
    expect(serveAll(queue)).toEqual([1, 4, 5, 2, 3]);
  });

  test("alternates between the classes of a caller's statements", () => {
    const queue = queueOf([item("ada", 1), item("ada", 2), item("ada", 3, KINDS[1])]);
    expect(serveAll(queue)).toEqual([1, 3, 2]);
  });

  test("skips statements that cannot run, which keep their position", () => {
    const queue = queueOf([item("ada", 1), item("bob", 2), item("bob", 3), item("eve", 4)]);
    expect(serveAll(queue, ({ caller }) => caller !== "ada")).toEqual([2, 4, 3]);
    queue.push(item("eve", 5));
    expect(serveAll(queue)).toEqual([1, 5]);
  });

  test("returns the first statements that can run", () => {
    const queue = queueOf([item("ada", 1), item("ada", 5), item("bob", 2), item("ada", 3, KINDS[1])]);
    expect(queue.takeWhile(({ id }) => id < 4).map(({ id }) => id)).toEqual([1, 3, 2]);
    expect(serveAll(queue)).toEqual([5]);
  });

  test("contains exactly the statements that were added and neither served nor removed", () => {
    const added = fc.record({ caller: fc.constantFrom("ada", "bob", "eve"), kind: fc.constantFrom(...KINDS) });
    const step = fc.oneof(added, fc.constant("serve" as const), fc.nat({ max: 30 }));
    fc.assert(
      fc.property(fc.array(step, { maxLength: 100 }), (steps) => {
        const queue = new ConnectionQueue<Item>();
        const all: Item[] = [];
        const held = new Set<Item>();
        for (const action of steps) {
          if (typeof action === "object") {
            const next = { ...action, id: all.length };
            all.push(next);
            held.add(next);
            queue.push(next);
          } else if (action === "serve") {
            const next = queue.find(() => true);
            expect(next === null).toBe(held.size === 0);
            if (!next) continue;
            queue.serve(next);
            // Nobody of the same caller and kind has waited for longer.
            expect([...held].find(({ caller, kind }) => caller === next.caller && kind === next.kind)).toBe(next);
            held.delete(next);
          } else if (all[action]) {
            queue.remove(all[action]);
            held.delete(all[action]);
          }
          expect(queue.length).toBe(held.size);
        }
        expect(new Set(serveAll(queue))).toEqual(new Set([...held].map(({ id }) => id)));
      }),
    );
  });
});
