import { expect, test } from "vitest";
import { LIVE_LIMITS } from "../../../live/queries/live-limits.ts";
import type { LiveQueryResult } from "../../../live/queries/relation-results.ts";
import { SharedResult } from "../../../live/queries/shared-result.ts";
import type { ReplicatedRelation } from "../../../live/stream/changes.ts";

const TEXT = { typeOid: 25, typeName: "text" };
const relation: ReplicatedRelation = {
  oid: 7,
  schema: "public",
  name: "items",
  replicaIdentity: "default",
  columns: [
    { name: "id", ...TEXT, isIdentity: true },
    { name: "title", ...TEXT, isIdentity: false },
  ],
};

function makeRowsResult(running: readonly number[] = [], startedAt = performance.now()): LiveQueryResult {
  const result: LiveQueryResult = new SharedResult("items", {
    dependencies: {} as LiveQueryResult["dependencies"],
    filters: [],
    statements: [],
    tableRows: { relation: 7, columns: ["id", "title"], keyPlaces: [0], deciding: new Set() },
    running: new Set(running),
  });
  result.acceptRun({ text: '[["1","a"]]', rowsSnapshot: "10:10:" }, 8n, startedAt);
  return result;
}

/** Returns whether the result accepts the change, and its text afterwards. */
function rename(result: LiveQueryResult, title = "b"): [boolean, string] {
  const change = { kind: "UPDATE", relation, old: null, new: ["1", title], index: 0 } as const;
  return [result.acceptChanges([{ xid: 11, number: 1, change }], 16n), result.current.text];
}

test("rows change without a run, and each state has a position", () => {
  const result = makeRowsResult();
  expect(rename(result)).toEqual([true, '[["1","b"]]']);
  expect(result.current.position).toBe(16n);
  expect(rename(result, "c")).toEqual([true, '[["1","c"]]']);
  expect(result.current.position).toBe(17n);
  expect(result.rows).toEqual(new Map([["1", ["1", "c"]]]));
});

test.each<[string, (result: LiveQueryResult) => void]>([
  ["while it lacks a commit", (result) => (result.isStale = true)],
  ["while definitions have changed", (result) => (result.isOutdated = true)],
  ["while a run waits or is in progress", (result) => (result.refreshing = Promise.resolve())],
  ["while a transaction runs that ran when it was opened", (result) => result.running.add(9)],
  [
    "after a run whose values have other texts",
    (result) => result.acceptRun({ text: '[["1","a"]]', rowsSnapshot: null }, 8n, performance.now()),
  ],
  [
    "long after the last run",
    (result) => result.acceptRun({ text: '[["1","a"]]', rowsSnapshot: "10:10:" }, 8n, performance.now() - 6_000),
  ],
])("a result is run again %s", (_when, prepare) => {
  const result = makeRowsResult();
  prepare(result);
  expect(rename(result)).toEqual([false, '[["1","a"]]']);
});

test("a result that changes make too large is run again", () => {
  expect(rename(makeRowsResult(), "x".repeat(LIVE_LIMITS.resultBytes))[0]).toBe(false);
});

test("a result changes without a run when all transactions have ended that ran before", () => {
  const result = makeRowsResult([9]);
  expect(rename(result)[0]).toBe(false);
  result.running.delete(9);
  expect(rename(result)[0]).toBe(true);
});
