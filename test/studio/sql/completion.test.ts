import { expect, test } from "vitest";
import type { DatabaseDescription } from "../../../studio/api/catalog.ts";
import { columnCompletions, namedTables, statementAround } from "../../../studio/sql/completion.ts";

const table = (schema: string, name: string, columns: readonly string[]) => ({
  schema,
  name,
  columns: columns.map((column) => ({ name: column, type: "text" })),
});

const CATALOG = {
  tables: [
    table("public", "films", ["id", "title"]),
    table("public", "Odd Table", ["a b"]),
    table("archive", "films", ["id", "closed"]),
  ],
  functions: [],
  schemas: [],
} as unknown as DatabaseDescription;

test.each([
  ["select from films f where ", ["public.films"]],
  ["select from archive.films", ["archive.films"]],
  ['select from "Odd Table" join FILMS on true', ["public.Odd Table", "public.films"]],
  ["update films set ", ["public.films"]],
  ["insert into films (", ["public.films"]],
  ["select from films a, archive . films b", ["public.films", "archive.films"]],
  ["select from nowhere", []],
])("the tables of a statement are found: %s", (statement, expected) => {
  expect(namedTables(CATALOG, statement).map(({ schema, name }) => `${schema}.${name}`)).toEqual(expected);
});

test("columns of all tables of the statement are suggested, quoted where they must be", () => {
  const suggested = columnCompletions(CATALOG, 'select from films, "Odd Table"');
  expect(suggested.map(({ apply, detail }) => [apply, detail])).toEqual([
    ["id", "text · films"],
    ["title", "text · films"],
    ['"a b"', "text · Odd Table"],
  ]);
});

test("only the statement at the cursor counts", () => {
  const text = "select 1; select 2 ; select 3";
  expect(statementAround(text, 14).trim()).toBe("select 2");
  expect(statementAround(text, text.length).trim()).toBe("select 3");
});
