import { expect, test } from "vitest";
import { splitStatements } from "../../migrate/split-statements.ts";

const sqlOf = (script: string) => splitStatements(script).map(({ sql }) => sql);

test("statements end at semicolons, and exclude the comments around them", () => {
  const script = "-- First.\nselect 1; /* two /* nested; */ */ select 2 -- and; more\n;;\n";
  expect(sqlOf(script)).toEqual(["select 1", "select 2"]);
  expect(splitStatements(script).map(({ start }) => script.slice(start, start + 8))).toEqual(["select 1", "select 2"]);
});

test.each([
  ["a text", "select 'a;''b' as c"],
  ["a text with escapes", "select e'it\\'s;' as c"],
  ["a quoted name", 'select 1 as "a;b"'],
  ["a dollar-quoted body", "do $$ begin perform 1; end $$"],
  ["a body with a tag", "do $body$ select $$;$$; $body$"],
  ["a standard body", "create function f() returns int begin atomic select 1; select case when true then 1 end; end"],
  ["the actions of a rule", "create rule r as on insert to t do also (delete from a; delete from b)"],
  ["a dollar sign within a name", "select a$b from c$d where x = 1"],
])("a semicolon within %s does not end a statement", (_, statement) => {
  expect(sqlOf(`${statement};\nselect 2;`)).toEqual([statement, "select 2"]);
});

test("an unfinished text is one statement", () => {
  expect(sqlOf("select 'a; select 2")).toEqual(["select 'a", "select 2"]);
  expect(sqlOf("do $$ a; b")).toEqual(["do $$ a; b"]);
});

test("a script of comments and white space has no statement", () => {
  expect(sqlOf(" -- nothing\n/* here */ \n")).toEqual([]);
});
