import { describe, expect, test } from "vitest";
import type { FilterOperation } from "../../../../planner/intent/intent.ts";
import { parseFilter } from "../../../../rest-gateway/table/parse/filter.ts";
import { complaintOf, parseErrorOf } from "./parse-error.ts";

const field = { name: "x", path: [] };
const parse = (text: string) => parseFilter(field, text, { orArgument: false });
const filter = (operation: FilterOperation, negated = false) => ({ kind: "filter", field, negated, operation });
const compare = (operator: string, value: string, quantifier: "any" | "all" | null = null) =>
  ({ kind: "compare", operator, quantifier, value }) as FilterOperation;
const search = (operator: string, value: string, language: string | null = null) =>
  ({ kind: "search", operator, language, value }) as FilterOperation;

const QUANTIFIABLE = ["eq", "gt", "gte", "lt", "lte", "like", "ilike", "match", "imatch"];
const OTHERS = ["neq", "cs", "cd", "ov", "sl", "sr", "nxr", "nxl", "adj"];

describe("filters", () => {
  test.each([...QUANTIFIABLE, ...OTHERS])("%s compares with any text", (operator) => {
    expect(parse(`${operator}.1`)).toEqual(filter(compare(operator, "1")));
    expect(parse(`not.${operator}.`)).toEqual(filter(compare(operator, ""), true));
    expect(parse(`${operator}.a.b,(c)"d"`)).toEqual(filter(compare(operator, 'a.b,(c)"d"')));
  });

  test.each(QUANTIFIABLE)("%s accepts any and all", (operator) => {
    expect(parse(`${operator}(any).{1,2}`)).toEqual(filter(compare(operator, "{1,2}", "any")));
    expect(parse(`not.${operator}(all).{}`)).toEqual(filter(compare(operator, "{}", "all"), true));
  });

  test.each(OTHERS)("%s does not accept any or all", (operator) => {
    expect(parseErrorOf(() => parse(`${operator}(any).{1,2}`))).toMatchObject({ code: "PGRST100" });
  });

  test.each(["like", "ilike"])("in the pattern of %s an asterisk is a percent sign", (operator) => {
    expect(parse(`${operator}.*a%b_*`)).toEqual(filter(compare(operator, "%a%b_%")));
    expect(parse(`${operator}(any).{a*,*b}`)).toEqual(filter(compare(operator, "{a%,%b}", "any")));
    expect(parse("match.^a*")).toEqual(filter(compare("match", "^a*")));
  });

  test.each(["fts", "plfts", "phfts", "wfts"])("%s searches, optionally in a language", (operator) => {
    expect(parse(`${operator}.cat & rat`)).toEqual(filter(search(operator, "cat & rat")));
    expect(parse(`not.${operator}(english).cat`)).toEqual(filter(search(operator, "cat", "english"), true));
    expect(parse(`${operator}( simple ).`)).toEqual(filter(search(operator, "", "simple")));
  });

  test("isdistinct compares with any text", () => {
    expect(parse("isdistinct.null")).toEqual(filter({ kind: "isdistinct", value: "null" }));
    expect(parse("not.isdistinct.1")).toEqual(filter({ kind: "isdistinct", value: "1" }, true));
  });

  test.each(["null", "not_null", "true", "false", "unknown"] as const)("is.%s may be written in any case", (value) => {
    expect(parse(`is.${value}`)).toEqual(filter({ kind: "is", value }));
    expect(parse(`not.is.${value.toUpperCase()}`)).toEqual(filter({ kind: "is", value }, true));
  });

  test.each([
    ["in.(1,2,3)", ["1", "2", "3"]],
    ["in.(a)", ["a"]],
    ["in.()", []],
    ["in.(   )", []],
    ['in.("")', []],
    ["in.(,)", ["", ""]],
    ["in.( 1, 2 )", ["1", " 2 "]],
    ['in.("a,b","c)d")', ["a,b", "c)d"]],
    ['in.("a\\"b","c\\\\d","e\\f")', ['a"b', "c\\d", "ef"]],
    ['in.(say "hi",")', ['say "hi"', '"']],
    ["in.(a\\b)", ["a\\b"]],
    ['in.("a"b,c)', ['"a"b', "c"]],
    ["in.(été,名)", ["été", "名"]],
    ["in.(1)and more", ["1"]],
  ])("%s is a list", (text, values) => {
    expect(parse(text)).toEqual(filter({ kind: "in", values }));
    expect(parse(`not.${text}`)).toEqual(filter({ kind: "in", values }, true));
  });

  test("a line break does not end a value", () => {
    expect(parse("eq.a\nb")).toEqual(filter(compare("eq", "a\nb")));
    expect(parse('in.("a\nb",c\nd)')).toEqual(filter({ kind: "in", values: ["a\nb", "c\nd"] }));
  });

  test.each([
    ["noop.0", `column 1: unexpected "o" expecting "not" or operator (eq, gt, ...)`],
    ["val", `column 1: unexpected "v" expecting "not" or operator (eq, gt, ...)`],
    ["", `column 1: unexpected end of input expecting "not" or operator (eq, gt, ...)`],
    ["xx.1", `column 1: unexpected "x" expecting "not" or operator (eq, gt, ...)`],
    ["eqx.1", `column 3: unexpected "x" expecting operator (eq, gt, ...)`],
    ["eq", "column 3: unexpected end of input expecting operator (eq, gt, ...)"],
    ["EQ.1", `column 1: unexpected "E" expecting "not" or operator (eq, gt, ...)`],
    ["notx.1", `column 4: unexpected "x" expecting delimiter (.)`],
    ["not.xx.1", `column 5: unexpected "x" expecting operator (eq, gt, ...)`],
    ["not.not.eq.1", `column 5: unexpected "n" expecting operator (eq, gt, ...)`],
    ["fts().value", `column 5: unexpected ")" expecting operator (eq, gt, ...)`],
    ["eq().value", `column 4: unexpected ")" expecting operator (eq, gt, ...)`],
    ["eq(any.1", `column 7: unexpected "." expecting operator (eq, gt, ...)`],
    ["is().value", `column 3: unexpected "(" expecting operator (eq, gt, ...)`],
    ["in().value", `column 3: unexpected "(" expecting operator (eq, gt, ...)`],
    ["in.1", `column 4: unexpected "1" expecting "("`],
    ["in.(1", `column 6: unexpected end of input expecting "," or ")"`],
    ["is.nope", `column 6: unexpected "p" expecting isVal: (null, not_null, true, false, unknown)`],
    ["is.", "column 4: unexpected end of input expecting isVal: (null, not_null, true, false, unknown)"],
  ])("%s is not a filter", (text, complaint) => {
    expect(complaintOf(() => parse(text))).toBe(complaint);
  });

  test("the error contains the text", () => {
    expect(parseErrorOf(() => parse("xx.1"))).toEqual({
      status: 400,
      code: "PGRST100",
      message: `"failed to parse filter (xx.1)" (line 1, column 1)`,
      details: `unexpected "x" expecting "not" or operator (eq, gt, ...)`,
      hint: null,
    });
  });
});

describe("arguments of a function called by GET", () => {
  const parseOrArgument = (text: string) => parseFilter(field, text, { orArgument: true });

  test.each(["5", "", "eq", "eqx.1", "a.b", "(1)", "[1,2]", "notice"])("%s is an argument", (text) => {
    expect(parseOrArgument(text)).toBeNull();
  });

  test("a value that begins like a filter is a filter", () => {
    expect(parseOrArgument("eq.5")).toEqual(filter(compare("eq", "5")));
    expect(parseOrArgument("is.null")).toEqual(filter({ kind: "is", value: "null" }));
  });

  test.each(["not.5", "in.5", "is.5"])("%s begins like a filter and must be one", (text) => {
    expect(parseErrorOf(() => parseOrArgument(text))).toMatchObject({ status: 400, code: "PGRST100" });
  });
});
