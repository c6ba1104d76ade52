import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  type ArrayElement,
  parseArrayLiteral,
  writeArrayLiteral,
} from "../../../../studio/tables/edit/array-literal.ts";
import { findValueProblem, valueKind } from "../../../../studio/tables/edit/value-kind.ts";
import "../../../property-runs.ts";

const ofType = (type: string, labels: readonly string[] | null = null) => ({
  type,
  base_type: type.replace(/\([^)]*\)/, ""),
  labels,
});

describe("array literals", () => {
  test("are read as Postgres writes them", () => {
    expect(parseArrayLiteral('{a,"b c",NULL,"NULL","",{x,"q\\"\\\\"}}')).toEqual([
      "a",
      "b c",
      null,
      "NULL",
      "",
      ["x", 'q"\\'],
    ]);
  });

  test.each(["", "a,b", "{a", "{a}}", "{a,}", "{,}", '{"a"b}', "[2:3]={a,b}"])("%j is none", (text) => {
    expect(parseArrayLiteral(text)).toBeNull();
  });

  test("are read as they were written", () => {
    const { array } = fc.letrec<{ array: ArrayElement[]; element: ArrayElement }>((tie) => ({
      element: fc.oneof(
        { maxDepth: 3 },
        fc.string({ unit: "grapheme" }),
        fc.constantFrom(null, "null", '"', "\\", "{", " "),
        tie("array"),
      ),
      array: fc.array(tie("element"), { maxLength: 4 }),
    }));
    fc.assert(
      fc.property(array, (elements) => {
        expect(parseArrayLiteral(writeArrayLiteral(elements))).toEqual(elements);
      }),
    );
  });
});

describe("a value's kind", () => {
  test.each([
    ["integer", "integer"],
    ["numeric(10,2)", "numeric"],
    ["timestamp with time zone", "timestamptz"],
    ["jsonb", "json"],
    ["text[]", "array"],
    ["inet", "other"],
  ])("of %s is %s", (type, kind) => {
    expect(valueKind(ofType(type))).toBe(kind);
  });

  test("of an enum is enum, and of an array of enums array", () => {
    expect(valueKind(ofType("mood", ["ok"]))).toBe("enum");
    expect(valueKind(ofType("mood[]", ["ok"]))).toBe("array");
  });
});

describe("a value", () => {
  test.each([
    ["smallint", "32768", { problem: "range", least: "-32768", greatest: "32767" }],
    [
      "bigint",
      "9223372036854775808",
      { problem: "range", least: "-9223372036854775808", greatest: "9223372036854775807" },
    ],
    ["integer", "1.5", { problem: "integer" }],
    ["integer", "", { problem: "integer" }],
    ["numeric", "1,5", { problem: "number" }],
    ["numeric(10,2)", "1.234", { problem: "decimals", limit: 2 }],
    ["boolean", "maybe", { problem: "boolean" }],
    ["uuid", "1234", { problem: "uuid" }],
    ["jsonb", "{a: 1}", { problem: "json" }],
    ["jsonb", " null", { problem: "jsonNull" }],
    ["text[]", "a,b", { problem: "array" }],
    ["date", "2026-02-30", { problem: "date" }],
    ["timestamp with time zone", "soon", { problem: "date" }],
    ["character varying(3)", "abcd", { problem: "length", limit: 3 }],
    ["bytea", "\\x0", { problem: "bytea" }],
  ])("of %s cannot be %j", (type, text, problem) => {
    expect(findValueProblem(text, ofType(type))).toEqual(problem);
  });

  test.each([
    ["bigint", "9223372036854775807"],
    ["numeric", "12345678901234567890.123456789012345678901234567890"],
    ["numeric(10,2)", "1.2300"],
    ["numeric", "NaN"],
    ["double precision", "-Infinity"],
    ["boolean", "t"],
    ["uuid", "A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11"],
    ["json", "[1.0]"],
    ["integer[]", "{{1,2},{3,NULL}}"],
    ["integer[]", "[0:1]={1,2}"],
    ["date", "infinity"],
    ["date", "0044-03-15 BC"],
    ["timestamp with time zone", "2026-11-22 12:00:00.123456+05:30"],
    ["timestamp without time zone", "Nov 22 2026"],
    ["character varying(3)", "äöü"],
    ["text", "=cmd|' /C calc'!A0"],
    ["inet", "anything, as Postgres decides"],
  ])("of %s can be %j", (type, text) => {
    expect(findValueProblem(text, ofType(type))).toBeNull();
  });

  test("of an enum is one of its labels, whose case counts", () => {
    expect(findValueProblem("ok", ofType("mood", ["ok", "sad"]))).toBeNull();
    expect(findValueProblem("OK", ofType("mood", ["ok", "sad"]))).toEqual({ problem: "enum" });
  });
});
