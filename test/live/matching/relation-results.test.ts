import { expect, test } from "vitest";
import { AffectedResults } from "../../../live/matching/affected-results.ts";
import { RelationResults } from "../../../live/matching/relation-results.ts";
import type { LiveQueryResult } from "../../../live/queries/live-subscriber.ts";
import type { RowChange } from "../../../live/stream/changes.ts";
import { makeResult } from "../queries/make-result.ts";

const RELATION = 7;

function resultOf(key: string, column: string | null, values: readonly string[], isExact = false): LiveQueryResult {
  return makeResult(key, RELATION, column === null ? [] : [{ relation: RELATION, column, values, isExact }]);
}

const COLUMNS = [
  { name: "list", typeName: "int4", isIdentity: true },
  { name: "place", typeName: "int4", isIdentity: false },
  { name: "name", typeName: "text", isIdentity: false },
];

function changeOf(kind: string, before: readonly string[] | null, after: readonly string[] | null): RowChange {
  return { kind, relation: { oid: RELATION, columns: COLUMNS }, old: before, new: after } as unknown as RowChange;
}

const results = new RelationResults<LiveQueryResult>(RELATION);
const ALL = [
  resultOf("every row", null, []),
  resultOf("list 1", "list", ["1"]),
  resultOf("lists 1 and 2", "list", ["+1", "002"]),
  resultOf("place 5", "place", ["5"]),
  resultOf("named a, as some collation compares", "name", ["a"]),
  resultOf("named a", "name", ["a"], true),
  resultOf("of nobody", "name", [], true),
];
for (const result of ALL) results.add(result);

function affected(...change: Parameters<typeof changeOf>): string[] {
  const found = new AffectedResults<LiveQueryResult>();
  found.addChange({ xid: 1, number: 1, change: changeOf(...change) }, results);
  return [...found.list().keys()].map(({ key }) => key).sort();
}
const ALWAYS = ["every row", "named a, as some collation compares"];

test.each([
  ["an insert", "INSERT", null, ["1", "9", "b"], ["list 1", "lists 1 and 2"]],
  ["an insert that no filter lets through", "INSERT", null, ["9", "9", "b"], []],
  ["an insert by another column", "INSERT", null, ["9", "5", "b"], ["place 5"]],
  ["an insert by a text", "INSERT", null, ["9", "9", "a"], ["named a"]],
  ["an insert of another text that some collation holds for equal", "INSERT", null, ["9", "9", "A"], []],
  [
    "an update that moves a row",
    "UPDATE",
    ["2", "9", "b"],
    ["1", "9", "b"],
    ["list 1", "lists 1 and 2", "named a", "place 5"],
  ],
  ["an update without the old row", "UPDATE", null, ["2", "9", "b"], ["lists 1 and 2", "named a", "place 5"]],
  ["a delete", "DELETE", ["2", "9", "b"], null, ["lists 1 and 2", "named a", "place 5"]],
  ["truncate", "TRUNCATE", null, null, ["list 1", "lists 1 and 2", "named a", "place 5"]],
])("%s affects the results whose filters the rows may meet", (_what, kind, before, after, found) => {
  expect(affected(kind, before, after)).toEqual([...ALWAYS, ...found].sort());
});

const rangeOf = (least: string | null, greatest: string | null) => ({
  relation: RELATION,
  column: "list",
  least,
  greatest,
});
const ranged = new RelationResults<LiveQueryResult>(RELATION);
const RANGED = [
  makeResult("from 5", RELATION, [rangeOf("5", null)]),
  makeResult("from 5 again", RELATION, [rangeOf("5", null)]),
  makeResult("5 to 9", RELATION, [rangeOf("5", null), rangeOf(null, "+9")]),
  makeResult("to 9 in place 1", RELATION, [rangeOf(null, "9"), { relation: RELATION, column: "place", values: ["1"] }]),
  makeResult("from a large number", RELATION, [rangeOf("9007199254740993", null)]),
  makeResult("from a text", RELATION, [rangeOf("five", null)]),
  makeResult("shown 1 and 7", RELATION, [rangeOf(null, "7")], {
    contents: {
      filters: [],
      arriving: [],
      shown: [{ relation: RELATION, columns: ["list"], keys: new Set(["1", "7"]) }],
    },
  }),
];
for (const result of RANGED) ranged.add(result);

test.each([
  ["below", "INSERT", null, ["4", "9", "b"], ["shown 1 and 7"]],
  ["at a bound", "INSERT", null, ["5", "9", "b"], ["5 to 9", "from 5", "from 5 again", "shown 1 and 7"]],
  ["above", "INSERT", null, ["10", "1", "b"], ["from 5", "from 5 again"]],
  ["of two filters", "INSERT", null, ["-3", "1", "b"], ["shown 1 and 7", "to 9 in place 1"]],
  ["beyond exact numbers, below", "INSERT", null, ["9007199254740992", "1", "b"], ["from 5", "from 5 again"]],
  [
    "beyond exact numbers, at the bound",
    "INSERT",
    null,
    ["9007199254740993", "1", "b"],
    ["from 5", "from 5 again", "from a large number"],
  ],
  ["null", "INSERT", null, [null, "1", "b"], []],
  [
    "that is not in the log",
    "INSERT",
    null,
    [undefined, "2", "b"],
    RANGED.filter(({ key }) => key !== "to 9 in place 1" && key !== "from a text").map(({ key }) => key),
  ],
  [
    "that is shown and leaves",
    "DELETE",
    ["7", "9", "b"],
    null,
    ["5 to 9", "from 5", "from 5 again", "shown 1 and 7", "to 9 in place 1"],
  ],
  ["that is not shown and leaves", "DELETE", ["3", "9", "b"], null, ["to 9 in place 1"]],
  [
    "that is not shown and stays outside",
    "UPDATE",
    null,
    ["8", "9", "b"],
    ["5 to 9", "from 5", "from 5 again", "to 9 in place 1"],
  ],
])("a value %s affects the results whose ranges and rows it may change", (_what, kind, before, after, found) => {
  const affectedResults = new AffectedResults<LiveQueryResult>();
  affectedResults.addChange({ xid: 1, number: 1, change: changeOf(kind, before, after as never) }, ranged);
  expect([...affectedResults.list().keys()].map(({ key }) => key).sort()).toEqual([...found, "from a text"].sort());
});

const paged = new RelationResults<LiveQueryResult>(RELATION);
paged.add(
  makeResult("page up to 7 with rows behind it", RELATION, [rangeOf("2", null)], {
    contents: { filters: [], arriving: [rangeOf(null, "7")], shown: [] },
  }),
);

test.each([
  ["arrives behind it", "INSERT", null, ["8", "9", "b"], 0],
  ["arrives on it", "INSERT", null, ["7", "9", "b"], 1],
  ["comes behind it from outside", "UPDATE", ["1", "9", "b"], ["8", "9", "b"], 0],
  ["changes behind it", "UPDATE", null, ["8", "9", "b"], 1],
  ["leaves from behind it", "DELETE", ["8", "9", "b"], null, 1],
  ["leaves outside", "DELETE", ["1", "9", "b"], null, 0],
])(
  "a row that %s affects a page that tells of further rows only if it may have been one of them",
  (_what, kind, before, after, count) => {
    const affectedResults = new AffectedResults<LiveQueryResult>();
    affectedResults.addChange({ xid: 1, number: 1, change: changeOf(kind, before, after) }, paged);
    expect(affectedResults.list().size).toBe(count);
  },
);

test("nothing stays of results that were removed, also twice", () => {
  for (const result of [...ALL, ...ALL]) results.remove(result);
  expect([results.isEmpty, affected("TRUNCATE", null, null)]).toEqual([true, []]);
});
