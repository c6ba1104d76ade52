import { expect, test, vi } from "vitest";
import { ShapeLog } from "../../../live/shapes/shape-log.ts";

const rowsOf = (...titles: string[]) => JSON.stringify(titles.map((title, at) => [String(at), title]));

function openLog(): ShapeLog {
  const log = new ShapeLog([0], 1, null);
  log.accept(rowsOf("a"), 8n, []);
  log.acceptSnapshot("100:100:");
  return log;
}

test("a client is sent the snapshot of what it has not read", () => {
  const log = openLog();
  const first = log.position;
  expect(log.snapshot).toBe("100:100:");
  expect(log.snapshotSince(first)).toBeNull();
  log.accept(rowsOf("b"), 16n, [101]);
  expect(log.snapshotSince(log.position)).toBeNull();
  // The query was closed for some time.
  log.accept(rowsOf("c"), 24n, []);
  log.acceptSnapshot("110:110:");
  expect(log.snapshotSince(first)).toBe("110:110:");
  log.accept(rowsOf("d"), 32n, [111]);
  expect(log.snapshotSince(log.position)).toBeNull();
});

test("a client that has the rows of a snapshot already is sent it for a minute", () => {
  const log = openLog();
  log.acceptSnapshot("110:110:");
  expect(log.snapshotSince(log.position)).toBe("110:110:");
  vi.useFakeTimers({ now: Date.now() + 61_000, toFake: ["Date"] });
  try {
    expect(log.snapshotSince(log.position)).toBeNull();
  } finally {
    vi.useRealTimers();
  }
});

test("a client that continues from a file is sent the snapshot, and the transactions since", () => {
  const log = openLog();
  log.accept(rowsOf("b"), 16n, [101]);
  log.acceptUnchanged([102]);
  const saved = { position: 12n << 32n, rows: new Map(), touched: new Map(), xids: [99], isOwn: true };
  const from = log.continueFrom(saved, "of all rows");
  expect(log.snapshotSince(from)).toBe("100:100:");
  expect(log.otherXidsSince(from)).toEqual([99, 101, 102]);
  expect(log.changesSince(from)).toMatchObject([{ before: null, after: ["0", "b"] }]);
});

test("a client that has all rows of a state is sent only what differs, whatever changed in between", () => {
  const log = openLog();
  const row = (id: string, title: string) => [id, [id, title]] as const;
  const saved = {
    position: 12n << 32n,
    rows: new Map([row("0", "b"), row("1", "gone")]),
    // Row 2 was added and deleted in between, row 0 was changed.
    touched: new Map([row("0", "b"), row("1", "gone"), row("2", "x")]),
    xids: [99],
    isOwn: true,
  };
  const from = log.continueFrom(saved, "of all rows");
  expect(log.changesSince(from)).toMatchObject([
    { before: ["1", "gone"], after: null },
    { before: ["0", "b"], after: ["0", "a"] },
  ]);
  // One that may have read any of these rows with a subset.
  const changes = log.changesSince(log.continueFrom(saved, "of changes"))!;
  expect(changes.filter(({ after }) => after === null).map(({ before }) => before![0])).toEqual(["2", "1", "0"]);
  expect(log.positionOf(saved.position, "of all rows")).toBe(from);
});
