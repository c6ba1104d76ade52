import { describe, expect, test } from "vitest";
import { bindValues, buildColumnArray, listOperations } from "../../../planner/plan/bind-parameters.ts";
import { runToCompletion } from "../../../runtime/concurrency/stepwise.ts";
import { at, call, compare, eq, filter, insert, isNull, post, read } from "../intents.ts";
import { payloadOf } from "../payload.ts";

describe("the values of bind parameters", () => {
  const intent = read("works", {
    where: [
      eq("id", "1"),
      { kind: "or", negated: false, conditions: [isNull("year"), compare("year", "gt", "1900")] },
      { kind: "related", relation: "artists", negated: false, condition: eq("name", "Claude") },
      filter("title", { kind: "in", values: ["a", 'b "c"', "d\\e,{}", "NULL", ""] }),
    ],
    conditions: [at("artists", eq("born", "1840"))],
  });

  test("are collected from all conditions in order, without conditions that have no value", () => {
    expect(listOperations(intent).map((operation) => "value" in operation && operation.value)).toEqual([
      "1840",
      "1",
      "1900",
      "Claude",
      false,
    ]);
    expect(bindValues([{ kind: "operand", index: 2 }], intent)).toEqual(["1900"]);
  });

  test("are array literals for lists, in which only quotes and backslashes are special", () => {
    expect(bindValues([{ kind: "operand", index: 4 }], intent)).toEqual([
      String.raw`{"a","b \"c\"","d\\e,{}","NULL",""}`,
    ]);
    const none = read("works", { where: [filter("id", { kind: "in", values: [] })] });
    expect(bindValues([{ kind: "operand", index: 0 }], none)).toEqual(["{}"]);
  });

  test("include the payload as it was sent", () => {
    const written = insert("works", { title: "x" });
    expect(bindValues([{ kind: "payload" }], written)).toEqual([written.payload.json]);
    expect(bindValues([{ kind: "payload" }], post("f", [1]))).toEqual([Buffer.from("[1]")]);
  });

  test("include bytes in hex, since a parameter is text", () => {
    const argument = { kind: "raw" as const, type: "bytea" as const, body: Buffer.from([0, 255]) };
    expect(bindValues([{ kind: "payload" }], { ...call("f"), argument })).toEqual([Buffer.from("\\x00ff")]);
  });

  test("include a value for each term of a cursor's order, and none for a null", () => {
    const page = { kind: "after", position: { order: "x", values: ["1906", null] } } as const;
    const slots = [0, 1].map((index) => ({ kind: "position" as const, index }));
    expect(bindValues(slots, read("works", {}, { page }))).toEqual(["1906", null]);
    expect(bindValues(slots, call("all_works", {}, {}, { page }))).toEqual(["1906", null]);
  });

  test("include the last value of a repeated argument, or all of them for a variadic parameter", () => {
    const called = call("f", { words: ["a", "b"] });
    expect(bindValues([{ kind: "argument", name: "words", all: false }], called)).toEqual(["b"]);
    expect(bindValues([{ kind: "argument", name: "words", all: true }], called)).toEqual(['{"a","b"}']);
  });
});

const arrayOf = (rows: string, name: string, isJson: boolean) =>
  runToCompletion(buildColumnArray(payloadOf(rows), { name, isJson })).toString();

describe("one column of rows as an array", () => {
  test.each([
    ["null", "{null}", "{null}"],
    ["true", "{true}", '{"true"}'],
    ["-1.50e3", "{-1.50e3}", '{"-1.50e3"}'],
    ['"null"', '{"null"}', String.raw`{"\"null\""}`],
    ['"{a,b} ä"', '{"{a,b} ä"}', String.raw`{"\"{a,b} ä\""}`],
    [String.raw`"\"\\\/"`, String.raw`{"\"\\/"}`, String.raw`{"\"\\\"\\\\/\""}`],
    [String.raw`"\n"`, '{"\n"}', String.raw`{"\"\\n\""}`],
    ['{ "a":[1.0, "\\n"]}', String.raw`{"{ \"a\":[1.0, \"\\n\"]}"}`, String.raw`{"{ \"a\":[1.0, \"\\n\"]}"}`],
  ])("%s", (value, plain, json) => {
    const rows = `[{"a":${value}}]`;
    expect([arrayOf(rows, "a", false), arrayOf(rows, "a", true)]).toEqual([plain, json]);
  });

  test("has an element for each row", () => {
    const rows = ' [ {"a" : 1,"b":"x"} , {"a" : null,"b":"y"} ]';
    expect([arrayOf(rows, "a", false), arrayOf(rows, "b", false)]).toEqual(["{1,null}", '{"x","y"}']);
  });
});
