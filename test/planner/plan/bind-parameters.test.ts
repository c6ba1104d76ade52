import { describe, expect, test } from "vitest";
import { bindValues, listOperations } from "../../../planner/plan/bind-parameters.ts";
import { at, call, compare, eq, filter, insert, isNull, post, read } from "../intents.ts";

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
