import { expect, test } from "vitest";
import { LIVE_LIMITS } from "../../../live/queries/live-limits.ts";
import type { LiveQueryResult } from "../../../live/queries/live-subscriber.ts";
import type { ResultEvent } from "../../../live/queries/result-states.ts";
import { SharedResult } from "../../../live/queries/shared-result.ts";
import type { ReplicatedRelation } from "../../../live/stream/changes.ts";
import { NO_ACTIONS } from "./make-result.ts";
import { openSubscriber } from "./subscriber.ts";

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

type First = { readonly rowsSnapshot?: string | null; readonly startedAt?: number };

function makeRowsResult(running: readonly number[] = [], first: First = {}): LiveQueryResult {
  const result: LiveQueryResult = new SharedResult(
    "items",
    {
      dependencies: {} as LiveQueryResult["dependencies"],
      filters: [],
      statements: [],
      tableRows: { relation: 7, columns: ["id", "title"], keyPlaces: [0], deciding: new Set() },
      running: new Set(running),
    },
    {
      text: '[["1","a"]]',
      rowsSnapshot: "10:10:",
      position: 8n,
      startedAt: performance.now(),
      contents: null,
      ...first,
    },
    NO_ACTIONS,
  );
  result.join(openSubscriber());
  return result;
}

/** Returns whether the result accepts the change, and its text afterwards. */
function rename(result: LiveQueryResult, title = "b"): [boolean, string] {
  const change = { kind: "UPDATE", relation, old: null, new: ["1", title], index: 0 } as const;
  const changes = [{ xid: 11, number: 1, change }];
  return [result.deliver({ xids: [[11]], changes, position: 16n }), result.current.text];
}

test("rows change without a run, and each state has a position", () => {
  const result = makeRowsResult();
  expect(rename(result)).toEqual([true, '[["1","b"]]']);
  expect(result.current.position).toBe(16n);
  expect(rename(result, "c")).toEqual([true, '[["1","c"]]']);
  expect(result.current.position).toBe(17n);
  expect(result.rows).toEqual(new Map([["1", ["1", "c"]]]));
});

test.each<[string, Parameters<typeof makeRowsResult>, ...events: readonly ResultEvent[]]>([
  ["while it lacks a commit", [], "noted"],
  ["while definitions have changed", [], "outdated"],
  ["while a run waits", [], "committed"],
  ["while a run is in progress", [], "committed", "turn", "visible"],
  ["while a transaction runs that ran when it was opened", [[9]]],
  ["after a run whose values have other texts", [[], { rowsSnapshot: null }]],
  ["long after the last run", [[], { startedAt: performance.now() - 6_000 }]],
])("a result is run again %s", (_when, made, ...events) => {
  const result = makeRowsResult(...made);
  for (const event of events) void result.handle(event);
  expect(rename(result)).toEqual([false, '[["1","a"]]']);
});

test("a result that changes make too large is run again", () => {
  expect(rename(makeRowsResult(), "x".repeat(LIVE_LIMITS.resultBytes))[0]).toBe(false);
});

test("a result changes without a run when all transactions have ended that ran before", () => {
  expect(rename(makeRowsResult([9]))[0]).toBe(false);
  const result = makeRowsResult([9]);
  result.endTransactions(new Set([9]));
  expect(rename(result)[0]).toBe(true);
});
