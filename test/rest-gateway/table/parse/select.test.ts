import { describe, expect, test } from "vitest";
import {
  ALL_COLUMNS,
  type SelectedColumn,
  type SelectedRelation,
  type SelectItem,
} from "../../../../planner/intent/intent.ts";
import { parseSelect } from "../../../../rest-gateway/table/parse/select.ts";
import { complaintOf, parseErrorOf } from "./parse-error.ts";

function column(name: string | null, more: Partial<Omit<SelectedColumn, "kind">> = {}): SelectedColumn {
  return {
    kind: "column",
    field: name === null ? null : { name, path: [] },
    alias: null,
    cast: null,
    aggregate: null,
    ...more,
  };
}

const everyColumn = column(null, { field: ALL_COLUMNS });

function relation(name: string, select: readonly SelectItem[], more: Partial<SelectedRelation> = {}): SelectedRelation {
  return { kind: "relation", name, alias: null, hint: null, join: null, spread: false, select, ...more };
}

describe("columns of select", () => {
  test.each([
    ["", []],
    ["*", [everyColumn]],
    ['"*"', [column("*")]],
    ["id,name", [column("id"), column("name")]],
    ["id, name ,age", [column("id"), column("name"), column("age")]],
    ["Just A Name", [column("Just A Name")]],
    ["first-name,$1,_x,123", [column("first-name"), column("$1"), column("_x"), column("123")]],
    ["naïve,名前,имя", [column("naïve"), column("名前"), column("имя")]],
    [
      '"a,b","(c)"," d ","e\\"f\\\\g",":h->i::j"',
      ["a,b", "(c)", " d ", 'e"f\\g', ":h->i::j"].map((name) => column(name)),
    ],
    ["title:name", [column("name", { alias: "title" })]],
    ['"a title":name', [column("name", { alias: "a title" })]],
    ["id::text", [column("id", { cast: "text" })]],
    ["n:id::double precision", [column("id", { alias: "n", cast: "double precision" })]],
    ["count", [column("count")]],
  ])("%s is parsed", (text, items) => {
    expect(parseSelect(text)).toEqual(items);
  });

  test.each([
    ["data->name", [["->", "name"]]],
    ["data->>name", [["->>", "name"]]],
    [
      "data->0->>1",
      [
        ["->", 0],
        ["->>", 1],
      ],
    ],
    [
      "data->-1->>a",
      [
        ["->", -1],
        ["->>", "a"],
      ],
    ],
    [
      "data->a-b->c d",
      [
        ["->", "a-b"],
        ["->", "c d"],
      ],
    ],
    [
      "data->0xy1->23-xy-45",
      [
        ["->", "0xy1"],
        ["->", "23-xy-45"],
      ],
    ],
    [
      'data->"a.b->c"->>"0"',
      [
        ["->", "a.b->c"],
        ["->>", "0"],
      ],
    ],
    ["data->!@#$%^&*_d", [["->", "!@#$%^&*_d"]]],
  ])("%s is a JSON path", (text, steps) => {
    const path = steps.map(([arrow, key]) => ({ arrow, key }));
    expect(parseSelect(text)).toEqual([column("data", { field: { name: "data", path } as SelectedColumn["field"] })]);
  });

  test("a path may have an alias and a cast", () => {
    expect(parseSelect("first:data->items->>0::int")).toEqual([
      {
        ...column("data", { alias: "first", cast: "int" }),
        field: {
          name: "data",
          path: [
            { arrow: "->", key: "items" },
            { arrow: "->>", key: 0 },
          ],
        },
      },
    ]);
  });

  test.each([
    ["count()", column(null, { aggregate: { name: "count", cast: null } })],
    ["total:count()::text", column(null, { alias: "total", aggregate: { name: "count", cast: "text" } })],
    ["views.sum()", column("views", { aggregate: { name: "sum", cast: null } })],
    ["views.avg()::int", column("views", { aggregate: { name: "avg", cast: "int" } })],
    [
      "m:views::int.max()::text",
      column("views", { alias: "m", cast: "int", aggregate: { name: "max", cast: "text" } }),
    ],
    ["id.count()", column("id", { aggregate: { name: "count", cast: null } })],
    ["min.min()", column("min", { aggregate: { name: "min", cast: null } })],
  ])("%s is an aggregate", (text, item) => {
    expect(parseSelect(text)).toEqual([item]);
  });
});

describe("relations of select", () => {
  const id = [column("id")];
  test.each<[string, SelectedRelation]>([
    ["clients(id)", relation("clients", id)],
    ["clients()", relation("clients", [])],
    ["owner:clients(id)", relation("clients", id, { alias: "owner" })],
    ["clients!fk(id)", relation("clients", id, { hint: "fk" })],
    ["clients!inner(id)", relation("clients", id, { join: "inner" })],
    ["clients!left(id)", relation("clients", id, { join: "left" })],
    ["clients!fk!inner(id)", relation("clients", id, { hint: "fk", join: "inner" })],
    ["clients!inner!fk(id)", relation("clients", id, { hint: "fk", join: "inner" })],
    ["clients!inner_fk(id)", relation("clients", id, { hint: "inner_fk" })],
    ['clients!"inner"(id)', relation("clients", id, { hint: "inner" })],
    ['o:"my clients"!"a,b"!left(id)', relation("my clients", id, { alias: "o", hint: "a,b", join: "left" })],
    ["...clients(id)", relation("clients", id, { spread: true })],
    ["...clients!fk!inner(id)", relation("clients", id, { hint: "fk", join: "inner", spread: true })],
    ["a(b(c(id)))", relation("a", [relation("b", [relation("c", id)])])],
    ["a( id , ...b(*) )", relation("a", [column("id"), relation("b", [everyColumn], { spread: true })])],
    ["a(data->0)", relation("a", [column("data", { field: { name: "data", path: [{ arrow: "->", key: 0 }] } })])],
    ["a(count())", relation("a", [column(null, { aggregate: { name: "count", cast: null } })])],
  ])("%s is parsed", (text, item) => {
    expect(parseSelect(text)).toEqual([item]);
  });

  test("the first of two hints is used", () => {
    expect(parseSelect("clients!a!b(id)")).toEqual([relation("clients", id, { hint: "a" })]);
  });

  test("relations may nest deep, but not without limit", () => {
    const nested = (levels: number) => `${"a(".repeat(levels)}id${")".repeat(levels)}`;
    expect(parseSelect(nested(100))).toHaveLength(1);
    expect(parseErrorOf(() => parseSelect(nested(5000)))).toMatchObject({ status: 400, code: "PGRST100" });
  });
});

describe("an invalid select", () => {
  // The texts are PostgREST's own, from its doctests and from answers of version 12.
  test.each([
    [
      "id,clients(name[])",
      `column 16: unexpected '[' expecting letter, digit, "-", "->>", "->", "::", ".", ")", "," or end of input`,
    ],
    [
      "id,name(id",
      `column 11: unexpected end of input expecting letter, digit, "-", "->>", "->", "::", ".", ")" or ","`,
    ],
    [
      "name!hint",
      `column 5: unexpected '!' expecting letter, digit, "-", "->>", "->", "::", ".", ")", "," or end of input`,
    ],
    ["*!hint", `column 2: unexpected '!' expecting ")", "," or end of input`],
    ["name::", "column 7: unexpected end of input expecting letter or digit"],
    ["id,!x", `column 4: unexpected "!" expecting "...", field name (* or [a..z0..9_$]), "*" or "count()"`],
    ["id,", `column 4: unexpected end of input expecting "...", field name (* or [a..z0..9_$]), "*" or "count()"`],
    ["a:", `column 3: unexpected end of input expecting ":" or field name (* or [a..z0..9_$])`],
    ["a-", `column 3: unexpected end of input expecting ">", letter or digit`],
    ['"a', `column 3: unexpected end of input expecting "\\\\" or "\\""`],
    ["data->>-78xy", `column 11: unexpected 'x' expecting digit, "->", "::", ".", "," or end of input`],
    ["data->>--34", `column 9: unexpected "-" expecting digit`],
    ["data->(a", `column 7: unexpected "(" expecting "-", digit or any non reserved character different from: .,>()`],
    ["name.foo()", `column 6: unexpected "f" expecting "sum", "avg", "count", "max" or "min"`],
    ["name.sum", `column 9: unexpected end of input expecting "()"`],
    ["...clients", `column 11: unexpected end of input expecting letter, digit, "-", "!" or "("`],
    [
      "count(id)",
      `column 6: unexpected '(' expecting letter, digit, "-", "->>", "->", "::", ".", ")", "," or end of input`,
    ],
  ])("%s", (text, complaint) => {
    expect(complaintOf(() => parseSelect(text))).toBe(complaint);
  });

  test("the error contains the text and the position in it, counted in characters", () => {
    expect(parseErrorOf(() => parseSelect("名前,!"))).toMatchObject({
      status: 400,
      code: "PGRST100",
      message: `"failed to parse select parameter (名前,!)" (line 1, column 4)`,
      hint: null,
    });
  });

  test("characters outside ASCII are shown by their code point", () => {
    expect(complaintOf(() => parseSelect("id,😀"))).toMatch(/^column 4: unexpected "\\128512" expecting/);
  });

  test("as in PostgREST, text after an unmatched closing parenthesis is ignored", () => {
    expect(parseSelect("id),!!")).toEqual([column("id")]);
  });
});
