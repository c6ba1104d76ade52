import { expect, test } from "vitest";
import type { ResultContents } from "../../../live/matching/affected-rows.ts";
import { ChangeMarks } from "../../../live/queries/change-marks.ts";
import type { LiveQueryResult } from "../../../live/queries/live-subscriber.ts";
import type { CommittedTransaction, RowChange } from "../../../live/stream/changes.ts";
import { makeResult } from "./make-result.ts";

const LISTS = 7;
const OTHERS = 8;
const MAX_NOTED = 5_000;

const makeResultOfList = () => makeResult("list 1", LISTS, [{ relation: LISTS, column: "list", values: ["1"] }]);

function insert(oid: number, list: number, index = 0): RowChange {
  const relation = { oid, columns: [{ name: "list", typeName: "int4", isIdentity: true }] };
  return { kind: "INSERT", relation, old: null, new: [String(list)], index } as unknown as RowChange;
}

const transactionOf = (xid: number): CommittedTransaction => ({
  xid,
  commitLsn: BigInt(xid),
  commitTime: new Date(0),
});

class Stream {
  marked = 0;
  readonly marks = new ChangeMarks({
    onMarked: () => this.marked++,
    onDefinitionsChanged: () => {},
    onUncertain: () => {},
  });

  transaction(xid: number, ...changes: RowChange[]): void {
    this.marks.begin();
    for (const change of changes) this.marks.change(change, transactionOf(xid));
    this.marks.commit(transactionOf(xid));
  }
}

test.each([
  ["a row that it may have", [insert(LISTS, 1)], [1]],
  ["a row that its filter excludes", [insert(LISTS, 2)], []],
  ["a row of another table", [insert(OTHERS, 1)], []],
  ["very many rows", Array.from({ length: MAX_NOTED + 1 }, () => insert(LISTS, 2)), [1]],
])("%s, committed while a query is opened", (_what, changes, xids) => {
  const { marks, transaction } = bind(new Stream());
  const opening = marks.openings.begin(0n);
  transaction(1, ...changes);
  marks.add(makeResultOfList(), opening);
  marks.openings.end(opening);
  const taken = marks.take();
  expect([...taken.xids]).toEqual(xids);
  expect(taken.list().size).toBe(xids.length);
});

test("a transaction that is read while the query is opened affects it with its commit", () => {
  const stream = new Stream();
  const { marks } = stream;
  const opening = marks.openings.begin(0n);
  marks.begin();
  marks.change(insert(LISTS, 1), transactionOf(3));
  const result = makeResultOfList();
  marks.add(result, opening);
  marks.openings.end(opening);
  expect([marks.take().isEmpty, stream.marked]).toEqual([true, 0]);
  marks.commit(transactionOf(3));
  expect(stream.marked).toBe(1);
  expect([...marks.take().list()]).toEqual([[result, { xids: [[3]], changes: null }]]);
});

test("a transaction counts as noted only if it was read from its first change on, after the opening began", () => {
  const { marks, transaction } = bind(new Stream());
  transaction(1, insert(LISTS, 1));
  const opening = marks.openings.begin(0n);
  transaction(2, insert(LISTS, 1));
  transaction(3, insert(LISTS, 1, 4));
  expect([1, 2, 3, 4].map((xid) => marks.openings.hasReadSince(opening, xid))).toEqual([false, true, false, false]);
});

const FIRST_LISTS = {
  filters: [{ relation: LISTS, column: "list", least: null, greatest: "3" }],
  arriving: [],
  shown: [],
};

test("a result stays affected when its contents change before it is taken", () => {
  const { marks, transaction } = bind(new Stream());
  const opening = marks.openings.begin(0n);
  const [result, other] = [makeResult("all", LISTS, []), makeResult("all of others", LISTS, [])];
  for (const each of [result, other]) marks.add(each, opening);
  marks.openings.end(opening);
  transaction(1, insert(LISTS, 9));
  setContents(marks, result, FIRST_LISTS);
  expect([...marks.take().list()]).toEqual([
    [result, { xids: [[1]], changes: null }],
    [other, { xids: [[1]], changes: null }],
  ]);
  transaction(2, insert(LISTS, 9));
  expect([...marks.take().list().keys()]).toEqual([other]);
  setContents(marks, result, null);
  transaction(3, insert(LISTS, 9));
  expect(marks.take().list().size).toBe(2);
});

test("contents do not bring back a result that was removed", () => {
  const { marks, transaction } = bind(new Stream());
  const opening = marks.openings.begin(0n);
  const [result, other] = [makeResult("all", LISTS, []), makeResult("all of others", LISTS, [])];
  for (const each of [result, other]) marks.add(each, opening);
  marks.openings.end(opening);
  marks.remove(result);
  setContents(marks, result, FIRST_LISTS);
  transaction(1, insert(LISTS, 1));
  expect([...marks.take().list().keys()]).toEqual([other]);
});

test("the next run includes the transactions that contents have decided about, and no others", async () => {
  const { marks, transaction } = bind(new Stream());
  const opening = marks.openings.begin(0n);
  transaction(1, insert(LISTS, 9));
  const result = makeResult("all", LISTS, [], { contents: FIRST_LISTS });
  marks.add(result, opening);
  marks.openings.end(opening);
  transaction(2, insert(LISTS, 9));
  transaction(3, insert(OTHERS, 9));
  setContents(marks, result, null);
  transaction(4, insert(LISTS, 9));
  const awaited: number[][] = [];
  const findInvisible = async (xids: ReadonlySet<number>) => {
    awaited.push([...xids]);
    return new Set<number>();
  };
  await Promise.all([1, 2].map(() => marks.decided.awaitVisible(findInvisible)));
  await marks.decided.awaitVisible(findInvisible);
  expect(awaited).toEqual([[1, 2]]);
});

test("of a result that was removed nothing is left", () => {
  const { marks, transaction } = bind(new Stream());
  const opening = marks.openings.begin(0n);
  const result = makeResultOfList();
  marks.add(result, opening);
  marks.openings.end(opening);
  transaction(1, insert(LISTS, 1));
  marks.remove(result);
  expect(marks.take().list().size).toBe(0);
  expect(marks.wants(insert(LISTS, 1).relation)).toBe(false);
});

/** By a run that gives the result these contents, or by the beginning of one. */
function setContents(marks: ChangeMarks, result: LiveQueryResult, contents: ResultContents | null): void {
  marks.changeContents(result, contents, () => {
    if (!contents) return result.forgetContents();
    result.beginRun();
    result.acceptRun({ text: "", contents });
  });
}

function bind(stream: Stream) {
  return { marks: stream.marks, transaction: stream.transaction.bind(stream) };
}

const TABLE_ROWS = { relation: LISTS, columns: ["list"], keyPlaces: [0], deciding: new Set<string>() };

/** Opens a result that a filter finds, and one that each change affects. */
function openWithRows() {
  const { marks, transaction } = bind(new Stream());
  const opening = marks.openings.begin(0n);
  const filters = [{ relation: LISTS, column: "list", values: ["1"] }];
  const opened = [
    makeResult("list 1", LISTS, filters, { tableRows: TABLE_ROWS }),
    makeResult("all", LISTS, [], { tableRows: TABLE_ROWS }),
  ];
  for (const each of opened) marks.add(each, opening);
  marks.openings.end(opening);
  const takeChanges = () => {
    const taken = marks.take().list();
    return opened.map((each) => taken.get(each)?.changes?.map(({ xid, change }) => `${xid}: ${change.new}`) ?? null);
  };
  return { marks, transaction, opened, takeChanges };
}

test("the changes of rows that affect a result are known in order", () => {
  const { transaction, takeChanges } = openWithRows();
  transaction(1, insert(LISTS, 1), insert(LISTS, 2));
  transaction(2, insert(LISTS, 1));
  expect(takeChanges()).toEqual([
    ["1: 1", "2: 1"],
    ["1: 1", "1: 2", "2: 1"],
  ]);
});

test.each<[string, (opened: ReturnType<typeof openWithRows>) => void]>([
  ["in very large number", ({ transaction }) => transaction(2, ...Array.from({ length: 100 }, () => insert(LISTS, 1)))],
  ["of very many bytes", ({ transaction }) => transaction(2, ...Array.from({ length: 40 }, () => insertLong()))],
  ["of a timeline that is perhaps lost", ({ marks }) => marks.gap()],
  ["beside something else than rows", ({ marks, opened }) => void opened.map((each) => marks.mark(each))],
])("changes %s are not known", (_which, affect) => {
  const opened = openWithRows();
  opened.transaction(1, insert(LISTS, 1));
  affect(opened);
  expect(opened.takeChanges()).toEqual([null, null]);
  opened.transaction(3, insert(LISTS, 1));
  expect(opened.takeChanges()).toEqual([["3: 1"], ["3: 1"]]);
});

function insertLong(): RowChange {
  const change = insert(LISTS, 1);
  return { ...change, new: ["1", "x".repeat(2 ** 19)] };
}
