import { expect, test } from "vitest";
import { writeResultCsv, writeResultJson, writeResultText } from "../../../studio/sql/result-files.ts";

const RESULT = {
  columns: [
    { name: "n", type: "numeric", category: "N" },
    { name: "t", type: "text", category: "S" },
    { name: "t", type: "jsonb", category: "U" },
    { name: "b", type: "boolean", category: "B" },
  ],
  rows: [
    ["12345678901234567890.10", '=1+1, "x"', '{"a": 10000000000000000001}', "t"],
    ["NaN", null, null, "f"],
  ],
};

test("CSV quotes, and protects formulas only for spreadsheets", () => {
  expect(writeResultCsv(RESULT, false).split("\r\n")).toEqual([
    "n,t,t,b",
    '12345678901234567890.10,"=1+1, ""x""","{""a"": 10000000000000000001}",t',
    "NaN,,,f",
    "",
  ]);
  expect(writeResultCsv(RESULT, true)).toContain(`,"'=1+1, ""x""",`);
});

test("JSON keeps all digits and all columns", () => {
  const text = writeResultJson(RESULT);
  expect(text).toContain(
    '"n": 12345678901234567890.10, "t": "=1+1, \\"x\\"", "t_2": {"a": 10000000000000000001}, "b": true',
  );
  expect(JSON.parse(text)[1]).toEqual({ n: "NaN", t: null, t_2: null, b: false });
});

test("copied text has one line for each row", () => {
  expect(writeResultText({ columns: RESULT.columns.slice(0, 2), rows: [["1", "a\tb\nc"]] })).toBe('n\tt\n1\t"a\tb\nc"');
});
