import { expect, test } from "vitest";
import { Marks } from "../../../../engine/database/replicas/marks.ts";

const sample = (place: bigint, askedAt: number) => ({ place, askedAt });

test("nobody is answered by a replica before it is known how far the primary was", () => {
  const marks = new Marks(10, 0);
  expect(marks.of("alice", null, 1)).toBeNull();
});

test("who is seen for the first time needs what the primary had by then, and no more afterwards", () => {
  const marks = new Marks(10, 0);
  expect(marks.of("alice", sample(100n, 5), 6)).toBeNull();
  expect(marks.of("alice", sample(200n, 7), 8)).toBe(200n);
  expect(marks.of("alice", sample(300n, 9), 10)).toBe(200n);
});

test("who has written needs that, and others do not", () => {
  const marks = new Marks(10, 0);
  for (const subject of ["alice", "bob"]) marks.of(subject, null, 1);
  marks.wrote("alice", sample(500n, 3));
  expect(marks.of("alice", sample(100n, 2), 4)).toBe(500n);
  expect(marks.of("bob", sample(100n, 2), 4)).toBe(100n);
});

test("a place that was asked for before a write of unknown outcome does not stand for it", () => {
  const marks = new Marks(10, 0);
  marks.hold("alice", 5);
  marks.wrote("alice", sample(100n, 4));
  expect(marks.of("alice", sample(100n, 4), 6)).toBeNull();
  marks.wrote("alice", sample(200n, 7));
  expect(marks.of("alice", sample(100n, 4), 8)).toBe(200n);
});

test("a change of the schema holds everybody back", () => {
  const marks = new Marks(10, 0);
  marks.wrote("alice", sample(100n, 1));
  expect(marks.of("alice", sample(100n, 1), 2)).toBe(100n);
  marks.holdAll(3);
  expect(marks.of("alice", sample(100n, 1), 4)).toBeNull();
  expect(marks.of("alice", sample(400n, 5), 6)).toBe(400n);
});

test("who was forgotten is treated as somebody new", () => {
  const marks = new Marks(2, 0);
  marks.wrote("alice", sample(100n, 1));
  for (const subject of ["bob", "carol", "dave"]) marks.of(subject, sample(100n, 1), 2);
  expect(marks.of("alice", sample(100n, 1), 3)).toBeNull();
});
