import { expect, test } from "vitest";
import {
  endsTransactions,
  isOneTransaction,
  isTransactionBoundary,
  splitTransactions,
} from "../../migrate/split-transactions.ts";

function summarize(script: string) {
  return splitTransactions(script).map(({ opening, statements, end }) => [
    opening,
    statements.map(({ sql }) => sql).join("; "),
    end,
  ]);
}

test.each([
  ["select 1; select 2", [["begin", "select 1; select 2", "commit"]]],
  ["begin; select 1; commit; -- done", [["begin", "select 1", "commit"]]],
  [
    "select 0; begin; select 1; COMMIT WORK; select 2",
    [
      ["begin", "select 0; select 1", "commit"],
      ["begin", "select 2", "commit"],
    ],
  ],
  [
    "start transaction isolation level serializable; select 1; end; begin; select 2; rollback; select 3",
    [
      ["start transaction isolation level serializable", "select 1", "commit"],
      ["begin", "select 2", "rollback"],
      ["begin", "select 3", "commit"],
    ],
  ],
  [
    "select 1; commit and no chain; commit; select 2; abort",
    [
      ["begin", "select 1", "commit"],
      ["begin", "select 2", "rollback"],
    ],
  ],
  [
    "savepoint a; select 1; rollback to a; release a",
    [["begin", "savepoint a; select 1; rollback to a; release a", "commit"]],
  ],
  [
    "create function f() returns int begin atomic select 1; end; do $$ begin commit; end $$",
    [["begin", "create function f() returns int begin atomic select 1; end; do $$ begin commit; end $$", "commit"]],
  ],
  ["begin; commit", []],
])("%s", (script, expected) => {
  expect(summarize(script)).toEqual(expected);
});

test("the end of a transaction is behind the statement that ends it", () => {
  const script = "select 1; commit; select 2;";
  expect(splitTransactions(script).map(({ endOffset }) => script.slice(0, endOffset))).toEqual([
    "select 1; commit",
    script,
  ]);
});

test("a script that begins and commits as a whole is one transaction", () => {
  expect(isOneTransaction("begin; select 1; commit;")).toBe(true);
  expect(isOneTransaction("begin; select 1; commit; select 2;")).toBe(false);
  expect(isOneTransaction("begin; select 1; rollback;")).toBe(false);
  expect(endsTransactions("begin; select 1;")).toBe(false);
  expect(endsTransactions("select 1; end transaction")).toBe(true);
});

test.each([
  ["begin", true],
  ["commit work", true],
  ["savepoint a", false],
  ["rollback to a", false],
  ["commit prepared 'a'", false],
])("whether %s begins or ends a transaction", (sql, expected) => {
  expect(isTransactionBoundary({ sql })).toBe(expected);
});
