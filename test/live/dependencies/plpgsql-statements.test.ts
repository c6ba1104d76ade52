import { expect, test } from "vitest";
import { DynamicSql, readPlpgsqlBody } from "../../../live/dependencies/plpgsql-statements.ts";
import { UnrecognizedBody } from "../../../live/dependencies/plpgsql-tokens.ts";

const read = (source: string) =>
  readPlpgsqlBody(source, { parameters: [{ name: "k", type: "int" }], resultType: "bool" });

/** Returns all SQL of a body. */
function sqlOf(source: string): string[] {
  const { queries, assignments } = read(source);
  return [...queries, ...assignments.map(({ sql }) => sql)];
}

test.each([
  ["begin return k > 1; end", ["select k > 1"]],
  ["<<outer>> declare n int := k; begin null; end outer;", ["select k"]],
  ["declare n constant pg_catalog.int4 not null default 2; begin return n = 2; end", ["select 2", "select n = 2"]],
  ["begin if a then null; elsif b then null; else return c; end if; end", ["select a", "select b", "select c"]],
  ["begin case k when 1, 2 then return a; else null; end case; end", ["select (select k) in (1, 2)", "select a"]],
  ["begin case when a then null; end case; end", ["select a"]],
  [
    "begin for i in reverse k..1 by 2 loop exit when i = 3; end loop; end",
    ["select k", "select 1", "select 2", "select i = 3"],
  ],
  ["begin <<l>> while a loop continue l; end loop l; loop exit; end loop; end", ["select a"]],
  ["begin perform f(k); return query select 1; end", ["select f(k)", "select 1"]],
  ["begin raise notice '% %', a, (b, c) using hint = d; end", ["select a", "select (b, c)", "select d"]],
  ["begin raise exception using message = a; raise; raise unique_violation; end", ["select a"]],
  [
    "begin assert a, b; exception when others or sqlstate '22012' then return c; end",
    ["select b", "select a", "select c"],
  ],
  ["declare n int; begin select a into strict n from t where b; end", ["select a from t where b"]],
  [
    "declare n int; begin n := (select count(*) from t); n = 'a;b' || $x$;$x$ || E'\\';'; end",
    ["select (select count(*) from t)", "select 'a;b' || $x$;$x$ || E'\\';'"],
  ],
  ["declare r record; begin for r in select 1 as a loop perform r.a; end loop; end", ["select 1 as a", "select r.a"]],
  ["-- begin\n/* end; /* nested */ */ begin return /* ; */ a; end", ["select a"]],
  [" #variable_conflict use_column\n begin return a; end", ["select a"]],
])("%s has its SQL", (source, expected) => {
  expect(sqlOf(source).toSorted()).toEqual(expected.toSorted());
});

test("SQL that names a record is put around its query, and those that this one names", () => {
  const { withRecords } = read(
    "declare r record; s record; begin select 1 as a into r; for s in select r.a as b loop perform s.b; end loop; end",
  );
  expect(withRecords("select s.b").replaceAll("\n", "")).toBe(
    'select from (select 1 as a ) as "r" cross join lateral (select r.a as b) as "s" where exists (select s.b)',
  );
  expect(withRecords("select k")).toBe("select k");
});

test.each([
  "begin execute a; end",
  "begin return query execute a; end",
  "declare n int; begin for n in execute a loop null; end loop; end",
])("%s composes SQL", (source) => {
  expect(() => read(source)).toThrow(DynamicSql);
});

test.each([
  "begin get diagnostics n = row_count; end",
  "declare c cursor for select 1; begin open c; end",
  "begin a.b := 1; end",
  "begin a[1] := 1; end",
  "begin select 1; end",
  "begin insert into t values (1); end",
  "begin n := 1; end",
  "declare k text; begin null; end",
  "declare r record; begin select 1 as a into r; select 2 as a into r; end",
  "declare r record; begin r := row(1); end",
  "begin foreach n slice 1 in array a loop null; end loop; end",
  "begin return 'unclosed; end",
  "begin return $a$; end",
  "begin return a); end",
  "begin return E'a'\n 'b\\'; perform c; '; end",
  "#variable_conflict use_variable\n begin return a; end",
  "begin return a; end; select 1",
  "",
])("%s is not recognized", (source) => {
  expect(() => read(source)).toThrow(UnrecognizedBody);
});
