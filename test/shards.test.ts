import fc from "fast-check";
import { expect, test } from "vitest";
import { divide } from "./shards.ts";

const sortedSeconds = fc.array(fc.integer({ min: 0, max: 100 })).map((list) => list.sort((a, b) => b - a));

test("every piece is in one shard", () => {
  fc.assert(
    fc.property(sortedSeconds, fc.integer({ min: 1, max: 5 }), (seconds, count) => {
      const pieces = seconds.map((_, index) => index);
      const shards = divide(pieces, (index) => seconds[index]!, count);
      expect(shards).toHaveLength(count);
      expect(shards.flat().sort((a, b) => a - b)).toEqual(pieces);
    }),
  );
});

test("no shard is longer than another by more than its last piece", () => {
  const shards = divide([40, 30, 20, 20, 10, 5], (seconds) => seconds, 2);
  expect(shards).toEqual([
    [40, 20, 5],
    [30, 20, 10],
  ]);
});
