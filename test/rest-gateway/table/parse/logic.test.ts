import { describe, expect, test } from "vitest";
import type { FieldReference, FilterOperation, RowCondition } from "../../../../planner/intent/intent.ts";
import { parseLogic } from "../../../../rest-gateway/table/parse/filter.ts";
import { complaintOf, parseErrorOf } from "./parse-error.ts";

const field = (name: string): FieldReference => ({ name, path: [] });
const eq = (name: string, value: string, negated = false): RowCondition => ({
  kind: "filter",
  field: field(name),
  negated,
  operation: { kind: "compare", operator: "eq", quantifier: null, value },
});
const is = (name: string, operation: FilterOperation, negated = false): RowCondition => ({
  kind: "filter",
  field: field(name),
  negated,
  operation,
});
const group = (kind: "and" | "or", conditions: RowCondition[], negated = false): RowCondition => ({
  kind,
  negated,
  conditions,
});

describe("logic trees", () => {
  test.each<[string, string, RowCondition]>([
    ["or", "(a.eq.1,b.eq.2)", group("or", [eq("a", "1"), eq("b", "2")])],
    ["and", "(a.eq.1)", group("and", [eq("a", "1")])],
    ["not.or", "(a.eq.1)", group("or", [eq("a", "1")], true)],
    ["not.and", "(a.not.eq.1)", group("and", [eq("a", "1", true)], true)],
    [
      "or",
      "(and(a.eq.1,b.eq.2),not.or(c.eq.3))",
      group("or", [group("and", [eq("a", "1"), eq("b", "2")]), group("or", [eq("c", "3")], true)]),
    ],
    [
      "and",
      "( and ( a.in.( 1, 2 ) , b.eq.3 ) , or ( c.eq.2 , c.eq.3 ) )",
      group("and", [
        group("and", [is("a", { kind: "in", values: ["1", " 2 "] }), eq("b", "3 ")]),
        group("or", [eq("c", "2 "), eq("c", "3 ")]),
      ]),
    ],
    ["or", '(a.eq."x,(y)",b.eq."a\\"b")', group("or", [eq("a", "x,(y)"), eq("b", 'a"b')])],
    ["or", '(a.eq."x"y,b.eq.")', group("or", [eq("a", '"x"y'), eq("b", '"')])],
    ["or", "(a.eq.{1,2},b.eq.{)", group("or", [eq("a", "{1,2}"), eq("b", "{")])],
    ["or", "(a.eq.,b.eq.)", group("or", [eq("a", ""), eq("b", "")])],
    ["or", "(order.eq.1,android.eq.2,not.eq.3)", group("or", [eq("order", "1"), eq("android", "2"), eq("not", "3")])],
    ["or", '("a.b".eq.1)', group("or", [eq("a.b", "1")])],
    [
      "or",
      "(a.is.null,b.not.is.true)",
      group("or", [is("a", { kind: "is", value: "null" }), is("b", { kind: "is", value: "true" }, true)]),
    ],
    [
      "or",
      "(a.plfts(german).Art Spass,a.eq(any).{x,y})",
      group("or", [
        is("a", { kind: "search", operator: "plfts", language: "german", value: "Art Spass" }),
        is("a", { kind: "compare", operator: "eq", quantifier: "any", value: "{x,y}" }),
      ]),
    ],
    ["and", "(a.eq.1,b.eq.2))", group("and", [eq("a", "1"), eq("b", "2")])],
  ])("%s=%s is parsed", (operator, text, condition) => {
    expect(parseLogic(operator, text)).toEqual(condition);
  });

  const related = (relation: string, condition: RowCondition, negated = false): RowCondition => ({
    kind: "related",
    relation,
    negated,
    condition,
  });
  test.each<[string, RowCondition]>([
    ["(a.b.eq.1,c.eq.2)", group("or", [related("a", eq("b", "1")), eq("c", "2")])],
    ["(a.b.not.eq.1)", group("or", [related("a", eq("b", "1", true))])],
    ["(not.a.b.eq.1)", group("or", [related("a", eq("b", "1"), true)])],
    ["(a.b.c.eq.1)", group("or", [related("a", related("b", eq("c", "1")))])],
    ["(a.or(b.eq.1,c.eq.2))", group("or", [related("a", group("or", [eq("b", "1"), eq("c", "2")]))])],
    ["(a.not.and(b.eq.1))", group("or", [related("a", group("and", [eq("b", "1")], true))])],
    ['("a.b"."eq".eq.1)', group("or", [related("a.b", eq("eq", "1"))])],
    // Filters that PostgREST accepts have its meaning.
    ["(a.eq.eq.1)", group("or", [eq("a", "eq.1")])],
    ["(not.not.eq.1)", group("or", [eq("not", "1", true)])],
  ])("beyond PostgREST, %s filters by a relation", (text, condition) => {
    expect(parseLogic("or", text)).toEqual(condition);
  });

  test("a condition may use a JSON path", () => {
    expect(parseLogic("or", "(data->a->>0.eq.1)")).toMatchObject({
      conditions: [
        {
          field: {
            name: "data",
            path: [
              { arrow: "->", key: "a" },
              { arrow: "->>", key: 0 },
            ],
          },
        },
      ],
    });
  });

  test.each([
    [
      "or",
      "()",
      'column 4: unexpected ")" expecting field name (* or [a..z0..9_$]), negation operator (not) or logic operator (and, or)',
    ],
    ["or", "(id.in.1,2,id.eq.3)", `column 10: unexpected "1" expecting "("`],
    ["or", ")(", `column 3: unexpected ")" expecting "("`],
    ["and", "(ord(id.eq.1,id.eq.1),id.eq.2)", `column 7: unexpected "d" expecting "("`],
    ["or", "(id.eq.1,not.xor(id.eq.2,id.eq.3))", `column 16: unexpected "x" expecting logic operator (and, or)`],
    ["or", "(id.eq.1", `column 11: unexpected end of input expecting "," or ")"`],
    ["or", "(id)", `column 6: unexpected ")" expecting letter, digit, "-", "->>", "->" or delimiter (.)`],
    ["or", "(order.zz.1)", `column 6: unexpected "d" expecting "("`],
    ["or", "(id.not.zz.1)", `column 11: unexpected "z" expecting operator (eq, gt, ...)`],
    ["or", "(id.zz.1)", `column 7: unexpected "z" expecting "not" or operator (eq, gt, ...)`],
    ["or", "", `column 3: unexpected end of input expecting "("`],
  ])("%s=%s is refused", (operator, text, complaint) => {
    expect(complaintOf(() => parseLogic(operator, text))).toBe(complaint);
  });

  test("the error contains the client's text, and counts the operator before it", () => {
    expect(parseErrorOf(() => parseLogic("or", "()")).message).toBe(
      '"failed to parse logic tree (())" (line 1, column 4)',
    );
  });

  test("trees may nest deep, but not without limit", () => {
    const nested = (levels: number) => `${"(and".repeat(levels)}(a.eq.1)${")".repeat(levels)}`;
    expect(parseLogic("or", nested(100))).toMatchObject({ kind: "or" });
    expect(parseErrorOf(() => parseLogic("or", nested(3000)))).toMatchObject({ status: 400, code: "PGRST100" });
  });
});
