import { describe, expect, test } from "vitest";
import { buildColumnArray } from "../../../planner/plan/bind-parameters.ts";
import { runToCompletion } from "../../../runtime/concurrency/stepwise.ts";
import { payloadOf } from "../payload.ts";

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
