import { expect, test } from "vitest";
import { LsnFloors } from "../../../postgres/database/lsn-floors.ts";

const sample = (place: bigint, askedAt: number) => ({ place, askedAt });

test("no caller is served by a replica before the LSN of the primary is known", () => {
  const marks = new LsnFloors(10, 0);
  expect(marks.floorFor("alice", null, 1)).toBeNull();
});

test("a new caller requires the current LSN of the primary, and no later one afterwards", () => {
  const marks = new LsnFloors(10, 0);
  expect(marks.floorFor("alice", sample(100n, 5), 6)).toBeNull();
  expect(marks.floorFor("alice", sample(200n, 7), 8)).toBe(200n);
  expect(marks.floorFor("alice", sample(300n, 9), 10)).toBe(200n);
});

test("a caller that has written requires the LSN of that write, and others do not", () => {
  const marks = new LsnFloors(10, 0);
  for (const subject of ["alice", "bob"]) marks.floorFor(subject, null, 1);
  marks.wrote("alice", sample(500n, 3));
  expect(marks.floorFor("alice", sample(100n, 2), 4)).toBe(500n);
  expect(marks.floorFor("bob", sample(100n, 2), 4)).toBe(100n);
});

test("an LSN that was requested before a write of unknown outcome is not used for it", () => {
  const marks = new LsnFloors(10, 0);
  marks.requireLater("alice", 5);
  marks.wrote("alice", sample(100n, 4));
  expect(marks.floorFor("alice", sample(100n, 4), 6)).toBeNull();
  marks.wrote("alice", sample(200n, 7));
  expect(marks.floorFor("alice", sample(100n, 4), 8)).toBe(200n);
});

test("a change of the schema applies to all callers", () => {
  const marks = new LsnFloors(10, 0);
  marks.wrote("alice", sample(100n, 1));
  expect(marks.floorFor("alice", sample(100n, 1), 2)).toBe(100n);
  marks.requireLaterForAll(3);
  expect(marks.floorFor("alice", sample(100n, 1), 4)).toBeNull();
  expect(marks.floorFor("alice", sample(400n, 5), 6)).toBe(400n);
});

test("an evicted caller is treated as a new one", () => {
  const marks = new LsnFloors(2, 0);
  marks.wrote("alice", sample(100n, 1));
  for (const subject of ["bob", "carol", "dave"]) marks.floorFor(subject, sample(100n, 1), 2);
  expect(marks.floorFor("alice", sample(100n, 1), 3)).toBeNull();
});
