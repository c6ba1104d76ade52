import { expect, test } from "vitest";
import { changeRows, type TableRows, tableRowsOf } from "../../../live/queries/table-rows.ts";
import type { ReplicatedColumn, ReplicatedRelation, ReplicatedRow, RowChange } from "../../../live/stream/changes.ts";

const INT4 = { typeOid: 23, typeName: "int4" };
const TEXT = { typeOid: 25, typeName: "text" };
const BOOL = { typeOid: 16, typeName: "bool" };

const column = (name: string, type: Pick<ReplicatedColumn, "typeOid" | "typeName">, isIdentity = false) => {
  return { name, ...type, isIdentity };
};

const relationOf = (...columns: ReplicatedColumn[]): ReplicatedRelation => {
  return { oid: 7, schema: "public", name: "items", replicaIdentity: "default", columns };
};
/** The log has the columns in another order than the result, and one more. */
const ITEMS = relationOf(
  column("id", INT4, true),
  column("title", TEXT),
  column("owner", TEXT),
  column("done", BOOL),
  column("hidden", TEXT),
);
const ROWS: TableRows = {
  relation: 7,
  columns: ["done", "id", "owner", "title"],
  keyPlaces: [1],
  deciding: new Set(["owner"]),
};
const BEFORE = '[["true","1","ann","a"], \n ["false","2","bob",null], \n [null,"3","ann","c\\"\\n"]]';
/** All before transaction 10 are in it. */
const SNAPSHOT = "10:10:";

type Changed = Pick<RowChange, "kind"> & { readonly old?: ReplicatedRow; readonly row?: ReplicatedRow };

function changed(
  {
    kind,
    old = null,
    row = null,
  }: Omit<Changed, "old" | "row"> & { old?: ReplicatedRow | null; row?: ReplicatedRow | null },
  { rows = ROWS, relation = ITEMS, xid = 11 } = {},
): string | null {
  const change = { kind, relation, old, new: row, index: 0 };
  return (
    changeRows({ text: BEFORE, rows: null }, [{ xid, number: 1, change }], { rows, snapshot: SNAPSHOT })?.text ?? null
  );
}

const update = (row: ReplicatedRow, old: ReplicatedRow | null = null) => ({ kind: "UPDATE", old, row }) as const;

test.each([
  [
    "another value",
    update(["1", "z", "ann", "f", "h"]),
    '[["false","1","ann","z"], \n ["false","2","bob",null], \n [null,"3","ann","c\\"\\n"]]',
  ],
  ["null", update(["1", null, "ann", null, "h"]), BEFORE.replace('["true","1","ann","a"]', '[null,"1","ann",null]')],
  [
    "a value that is too long to be in the log again",
    update(["3", undefined, "ann", "t", undefined]),
    BEFORE.replace('[null,"3"', '["true","3"'),
  ],
  [
    "a row that is not in the result, whose owner is known",
    update(["9", "z", "ann", "f", "h"], ["9", "y", "ann", "f", "h"]),
    BEFORE,
  ],
  ["a deleted row", { kind: "DELETE", old: ["2"] } as const, BEFORE.replace('["false","2","bob",null], \n ', "")],
  ["a deleted row that is not in the result", { kind: "DELETE", old: ["9"] } as const, BEFORE],
])("the rows have %s without a run", (_what, change, after) => {
  expect(changed(change)).toBe(after);
});

test.each([
  ["a new row", { kind: "INSERT", row: ["4", "d", "ann", "t", "h"] } as const],
  ["a table that is emptied", { kind: "TRUNCATE" } as const],
  ["an owner who leaves", update(["1", "a", null, "t", "h"])],
  ["another owner", update(["1", "a", "bob", "t", "h"])],
  ["an owner of before that is unknown", update(["9", "z", "ann", "f", "h"])],
  ["another key", update(["4", "a", "ann", "t", "h"], ["1"])],
])("only a run tells for %s", (_what, change) => {
  expect(changed(change)).toBeNull();
});

const RENAMED = update(["1", "z", "ann", "t", "h"]);

test("what the run has is not made again", () => {
  expect(changed(RENAMED, { xid: 9 })).toBe(BEFORE);
  expect(changed({ kind: "INSERT", row: ["4", "d", "ann", "t", "h"] }, { xid: 9 })).toBe(BEFORE);
});

const withTitleOf = (type: Pick<ReplicatedColumn, "typeOid" | "typeName">) => ({
  relation: relationOf(column("id", INT4, true), column("title", type), ...ITEMS.columns.slice(2)),
});

test.each([
  ["a column that the log does not have", { rows: { ...ROWS, columns: [...ROWS.columns, "virtual"] } }],
  ["a deciding column that the log does not have", { rows: { ...ROWS, deciding: new Set(["virtual"]) } }],
  ["a key that old rows lack", { rows: { ...ROWS, keyPlaces: [3] } }],
  [
    "a boolean in the key, which the log has as t",
    { relation: relationOf(column("id", BOOL, true), ...ITEMS.columns.slice(1)) },
  ],
  ["another table", { relation: { ...ITEMS, oid: 8 } }],
  ["blanks at the end, which a cast leaves out", withTitleOf({ typeOid: 1042, typeName: "bpchar" })],
  ["a type that is cast to another text", withTitleOf({ typeOid: 869, typeName: "inet" })],
  ["a type of the owner's with the name of another", withTitleOf({ typeOid: 20_000, typeName: "text" })],
])("only runs change rows with %s", (_what, options) => {
  expect(changed(RENAMED, options)).toBeNull();
});

test("changes follow each other, and the text is read once", () => {
  const changes = ["x", "y"].map((title, index) => ({
    xid: 11 + index,
    number: index,
    change: { ...update([`${index + 1}`, title, index === 0 ? "ann" : "bob", "t", "h"]), relation: ITEMS, index: 0 },
  }));
  const of = { rows: ROWS, snapshot: SNAPSHOT };
  const toChange = ({ row, ...change }: (typeof changes)[number]["change"]) => ({ ...change, new: row });
  const all = changes.map((each) => ({ ...each, change: toChange(each.change) }));
  const once = changeRows({ text: BEFORE, rows: null }, all, of)!;
  const first = changeRows({ text: BEFORE, rows: null }, all.slice(0, 1), of)!;
  expect(changeRows({ text: "not read", rows: first.rows }, all.slice(1), of)).toEqual(once);
  expect(JSON.parse(once.text).map(([, , , title]: string[]) => title)).toEqual(["x", "y", 'c"\n']);
});

const DEPENDENCIES = {
  relations: [{ oid: 7, reads: 1, policyColumns: ["owner"] }],
  readsRequest: false,
};

test.each([
  ["what reads the table once", {}, {}, new Set(["done", "owner"])],
  ["what reads it twice", {}, { relations: [{ oid: 7, reads: 2, policyColumns: [] }] }, null],
  ["policies that read whole rows", {}, { relations: [{ oid: 7, reads: 1, policyColumns: null }] }, null],
  ["what depends on the request", {}, { readsRequest: true }, null],
  ["a function that runs before", { isPrivate: true }, {}, null],
  ["a query of no single table", { rows: undefined }, {}, null],
])("%s", (_what, source, dependencies, deciding) => {
  const rows = { relation: 7, columns: ["id"], keyPlaces: [0], conditionColumns: ["done"] };
  const of = tableRowsOf({ isPrivate: false, rows, ...source } as never, { ...DEPENDENCIES, ...dependencies } as never);
  expect(of?.deciding ?? null).toEqual(deciding);
});
