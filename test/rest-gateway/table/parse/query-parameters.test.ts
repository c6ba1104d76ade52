import { describe, expect, test } from "vitest";
import { ALL_COLUMNS } from "../../../../planner/intent/intent.ts";
import { parseQueryParameters } from "../../../../rest-gateway/table/parse/query-parameters.ts";
import { parseQueryString } from "../../../../rest-gateway/table/parse/query-string.ts";
import { parseErrorOf } from "./parse-error.ts";

const parse = (text: string, withArguments = false) => parseQueryParameters(parseQueryString(text), { withArguments });
const everything = { kind: "column", field: ALL_COLUMNS, alias: null, cast: null, aggregate: null };

describe("parameters", () => {
  test("an empty query selects everything", () => {
    expect(parse("")).toEqual({
      select: [everything],
      conditions: [],
      having: [],
      distinct: [],
      orders: [],
      bounds: [],
      page: null,
      columns: null,
      onConflict: null,
      arguments: [],
    });
  });

  test("an empty select selects everything", () => {
    expect(parse("select=").select).toEqual([everything]);
  });

  test("the first select is used, and so are the first columns and on_conflict", () => {
    const query = parse("select=a()&select=*&columns=a&columns=b&on_conflict=c,d&on_conflict=e");
    expect(query).toMatchObject({ select: [{ name: "a" }], columns: ["a"], onConflict: ["c", "d"] });
  });

  test("filters and trees apply to the row or to a relation, by the name of the parameter", () => {
    const { conditions } = parse(
      "id=eq.1&clients.name=like.A*&a.b.data->x=is.null&or=(a.eq.1)&clients.not.and=(b.eq.2)",
    );
    expect(conditions.map(({ path, value }) => [path, value.kind, value.negated])).toEqual([
      [[], "filter", false],
      [["clients"], "filter", false],
      [["a", "b"], "filter", false],
      [[], "or", false],
      [["clients"], "and", true],
    ]);
  });

  test("orders keep their sequence", () => {
    const { orders } = parse("order=id.desc&clients.order=name&a.b.order=c");
    expect(orders.map(({ path, value }) => [path, value[0]!.field.name])).toEqual([
      [[], "id"],
      [["clients"], "name"],
      [["a", "b"], "c"],
    ]);
  });

  test("limit and offset of one relation are combined, the last of each is used", () => {
    expect(parse("limit=1&a.offset=2&offset=3&a.limit=4&limit=5&b.limit=x").bounds).toEqual([
      { path: [], limit: 5, offset: 3 },
      { path: ["a"], limit: 4, offset: 2 },
      { path: ["b"], limit: null, offset: null },
    ]);
  });

  test("only the last part of a name is reserved, and only if unquoted", () => {
    expect(parse("selects=eq.1&select.id=eq.1&orders=eq.1&%22order%22=eq.1").conditions).toHaveLength(4);
  });

  test("a cursor has no dot, and a filter on a column with that name has one", () => {
    expect(parse("cursor=")).toMatchObject({ page: { kind: "first" }, conditions: [] });
    expect(parse("cursor=abc&cursor=")).toMatchObject({ page: { kind: "unreadable" }, conditions: [] });
    expect(parse("cursor=eq.5&cursor=not.is.null")).toMatchObject({
      page: null,
      conditions: [{ path: [] }, { path: [] }],
    });
    expect(parse("cursor=eq.5&cursor=")).toMatchObject({ page: { kind: "first" }, conditions: [{ path: [] }] });
    expect(parse("films.cursor=eq.5&%22cursor%22=eq.5").page).toBeNull();
  });

  test("a cursor may be an argument of a function", () => {
    expect(parse("cursor=5&a=1", true)).toMatchObject({
      page: { kind: "unreadable" },
      arguments: [
        ["cursor", "5"],
        ["a", "1"],
      ],
    });
    expect(parse("cursor=2.5", true)).toMatchObject({ page: null, arguments: [["cursor", "2.5"]] });
  });

  test("an argument may be a value without an operator, and repeats are kept", () => {
    const query = parse("a=1&b=x.y&a=2&c=eq.3&rel.d=4", true);
    expect(query.arguments).toEqual([
      ["a", "1"],
      ["b", "x.y"],
      ["a", "2"],
      ["d", "4"],
    ]);
    expect(query.conditions).toMatchObject([{ path: [], value: { field: { name: "c" } } }]);
  });

  test.each([
    ["a.cursor=5", '"failed to parse filter (5)" (line 1, column 1)'],
    ["id=5", '"failed to parse filter (5)" (line 1, column 1)'],
    ["id=", '"failed to parse filter ()" (line 1, column 1)'],
    ["=eq.1", '"failed to parse tree path ()" (line 1, column 1)'],
    ["a..order=b", '"failed to parse tree path (a..order)" (line 1, column 3)'],
    ["a..limit=1", '"failed to parse tree path (a..limit)" (line 1, column 3)'],
    ["order=", '"failed to parse order ()" (line 1, column 1)'],
    ["columns=", '"failed to parse columns parameter ()" (line 1, column 1)'],
    ["a..or=(b.eq.1)", '"failed to parse logic path (a..or)" (line 1, column 3)'],
  ])("%s is refused", (text, message) => {
    expect(parseErrorOf(() => parse(text))).toMatchObject({ status: 400, code: "PGRST100", message });
  });
});
