import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { runToCompletion } from "../../../runtime/concurrency/stepwise.ts";
import { type JsonScan, type RecordVisitor, scanJson } from "../../../runtime/json/scan-json.ts";
import { stepsOf } from "../steps.ts";

const scan = (text: string): JsonScan => runToCompletion(scanJson(Buffer.from(text)));

/** Returns the calls that a visitor receives. */
function records(text: string) {
  const bytes = Buffer.from(text);
  const slice = (start: number, end: number) => bytes.toString("utf8", start, end);
  const result: unknown[] = [];
  let members: unknown[] = [];
  const visitor: RecordVisitor = {
    beginRecord: () => {
      members = [];
    },
    member: (nameStart, nameEnd, start, end, values) =>
      members.push([slice(nameStart, nameEnd), slice(start, end), values]),
    endRecord: (start, end) => result.push({ text: slice(start, end), members }),
    other: () => result.push("other"),
  };
  runToCompletion(scanJson(bytes, visitor));
  return result;
}

describe("a JSON text", () => {
  test.each([
    ["{}", { kind: "object", values: 1, levels: 1 }],
    ["[]", { kind: "list", values: 1, levels: 1 }],
    [" 5 ", { kind: "scalar", values: 1, levels: 0 }],
    ['"x"', { kind: "scalar", values: 1, levels: 0 }],
    ['{"a":[1,2,{"b":null}],"c":true}', { kind: "object", values: 7, levels: 3 }],
    ["[[],[[]]]", { kind: "list", values: 4, levels: 3 }],
    ["", { kind: "invalid" }],
    ["[1,]", { kind: "invalid" }],
    ['{"a"}', { kind: "invalid" }],
    ["[1}", { kind: "invalid" }],
    ["1 2", { kind: "invalid" }],
  ])("%s is measured", (text, expected) => {
    expect(scan(text)).toEqual(expected);
  });

  test("is refused if it is deeper than the limit, which the caller may set", () => {
    const nested = (levels: number) => "[".repeat(levels) + "]".repeat(levels);
    expect(scan(nested(10_000))).toMatchObject({ kind: "list", levels: 10_000 });
    expect(scan(nested(10_001))).toEqual({ kind: "too deep", maxLevels: 10_000 });
    expect(runToCompletion(scanJson(Buffer.from(nested(6)), null, 5))).toEqual({ kind: "too deep", maxLevels: 5 });
  });

  test("is counted as a parser would count it", () => {
    const count = (value: unknown): number =>
      1 +
      (typeof value === "object" && value !== null
        ? Object.values(value).reduce((sum: number, each) => sum + count(each), 0)
        : 0);
    const depth = (value: unknown): number =>
      typeof value === "object" && value !== null ? 1 + Math.max(0, ...Object.values(value).map(depth)) : 0;
    fc.assert(
      fc.property(fc.jsonValue({ noUnicodeString: false }), fc.constantFrom(0, 1, 3), (value, indent) => {
        expect(scan(JSON.stringify(value, null, indent))).toMatchObject({ values: count(value), levels: depth(value) });
      }),
    );
  });
});

describe("the records of a JSON text", () => {
  test.each([
    [
      '{"a" : 1, "b":[{"c":2}] }',
      [
        {
          text: '{"a" : 1, "b":[{"c":2}] }',
          members: [
            ['"a"', "1", 1],
            ['"b"', '[{"c":2}]', 3],
          ],
        },
      ],
    ],
    [
      '[{"a":1},5,{},[{"a":1}],{"a":{"b":{}}}]',
      [
        { text: '{"a":1}', members: [['"a"', "1", 1]] },
        "other",
        { text: "{}", members: [] },
        "other",
        { text: '{"a":{"b":{}}}', members: [['"a"', '{"b":{}}', 2]] },
      ],
    ],
    ['"x"', []],
    ["[]", []],
  ])("%s are returned one after the other", (text, expected) => {
    expect(records(text)).toEqual(expected);
  });
});

test.each([
  ["lists", (length: number) => `[${"[],".repeat(length / 3)}0]`],
  ["numbers", (length: number) => `[${"1,".repeat(length / 2)}0]`],
  ["one text", (length: number) => `"${"x".repeat(length)}"`],
  ["one text of escapes", (length: number) => `"${"\\n".repeat(length / 2)}"`],
  ["one object", (length: number) => `{${'"a":1,'.repeat(length / 6)}"b":2}`],
  ["rows", (length: number) => `[${'{"a":1},'.repeat(length / 8)}{}]`],
])("of a long text are read in many steps, so that it delays no others: %s", (_what, make) => {
  const steps = stepsOf(scanJson(Buffer.from(make(2_000_000))));
  expect(steps).toBeGreaterThan(50);
});
