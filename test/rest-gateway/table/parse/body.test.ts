import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { outlineJson } from "../../../../rest-gateway/table/parse/body.ts";
import { runToCompletion } from "../../../../runtime/concurrency/stepwise.ts";
import { propertyRuns } from "../../../property-runs.ts";

function outline(text: string | Buffer) {
  const read = runToCompletion(outlineJson(Buffer.from(text)));
  if (read.kind !== "rows") return read;
  const { valueSpans: _, ...rest } = read;
  return rest;
}

/** The values' texts, row by row. */
function grid(text: string | Buffer): { keys: readonly string[]; values: string[] } | null {
  const bytes = Buffer.from(text);
  const read = runToCompletion(outlineJson(bytes));
  if (read.kind !== "rows" || read.valueSpans === null) return null;
  const { keys } = read.valueSpans;
  const spans = [...read.valueSpans.spans];
  const values = spans.flatMap((start, index) => (index % 2 ? [] : [bytes.toString("utf8", start, spans[index + 1])]));
  return { keys, values };
}

describe("the outline of a JSON text", () => {
  test.each([
    ["{}", { kind: "object", keys: [] }],
    [' {"a":1 , "b":[{"c":2}]} ', { kind: "object", keys: ["a", "b"] }],
    ['{"a":1,"a":2}', { kind: "object", keys: ["a"] }],
    ['{"\\u0061\\"é":1}', { kind: "object", keys: ['a"é'] }],
    ["[]", { kind: "rows", keys: [] }],
    ["[ {} , {} ]", { kind: "rows", keys: [] }],
    ['[{"a":1,"b":2},{"b":3,"a":4}]', { kind: "rows", keys: ["a", "b"] }],
    ['[{"a":1},{"\\u0061":2}]', { kind: "rows", keys: ["a"] }],
    ['[{"a":1,"a":2},{"a":3}]', { kind: "rows", keys: ["a"] }],
    ['[{"a":1},{"b":2}]', { kind: "mixed" }],
    ['[{"a":1},{"a":1,"b":2}]', { kind: "mixed" }],
    ['[{"a":1},5]', { kind: "mixed" }],
    ["[1,2]", { kind: "mixed" }],
    ["[[]]", { kind: "mixed" }],
    ["[{},[{}]]", { kind: "mixed" }],
    ["5", { kind: "scalar" }],
    ['"x"', { kind: "scalar" }],
    ["null", { kind: "scalar" }],
    ["-0.5e+10", { kind: "scalar" }],
  ])("%s", (text, expected) => {
    expect(outline(text)).toEqual(expected);
  });

  test("is read from the text only, however deep the text nests", () => {
    const tooDeep = { kind: "too deep", maxLevels: 10_000 };
    expect(outline("[".repeat(1_000_000))).toEqual(tooDeep);
    expect(outline('{"a":'.repeat(1_000_000))).toEqual(tooDeep);
    expect(outline(`{"a":${"[".repeat(1000)}${"]".repeat(1000)}}`)).toEqual({ kind: "object", keys: ["a"] });
  });

  test("accepts JSON and nothing else", () => {
    const almostJson = fc
      .tuple(
        fc.json(),
        fc.nat(),
        fc.constantFrom("", "{", "}", "[", "]", ",", ":", '"', "\\", "0", "-", ".", "e", "t", " ", "\n"),
      )
      .map(([text, at, mark]) => {
        const place = at % (text.length + 1);
        return text.slice(0, place) + mark + text.slice(place + (at % 2));
      });
    fc.assert(
      fc.property(almostJson, (text) => {
        expect(outline(text).kind !== "invalid").toBe(isJson(text));
      }),
      { numRuns: propertyRuns(2000) },
    );
  });

  test("has the keys that a JSON parser finds", () => {
    const rows = fc.array(fc.dictionary(fc.string({ unit: "binary" }), fc.jsonValue({ maxDepth: 2 }), { maxKeys: 3 }), {
      minLength: 1,
      maxLength: 4,
    });
    fc.assert(
      fc.property(rows, (values) => {
        const keys = values.map((value) => JSON.stringify(Object.keys(value).sort()));
        const found = outline(JSON.stringify(values));
        expect(found.kind).toBe(keys.every((key) => key === keys[0]) ? "rows" : "mixed");
        if (found.kind === "rows") expect([...found.keys!].sort()).toEqual(Object.keys(values[0]!).sort());
      }),
    );
  });
});

describe("more keys than a table can have columns", () => {
  const object = (count: number) => `{${Array.from({ length: count }, (_, index) => `"k${index}":1`).join()}}`;

  test.each([1_600, 1_601, 100_000])("are not listed: %i", (count) => {
    const result = count === 1_600 ? 1_600 : undefined;
    for (const [text, kind] of [
      [object(count), "object"],
      [`[${object(count)},${object(count)}]`, "rows"],
    ] as const) {
      const found = outline(text);
      expect(found.kind).toBe(kind);
      expect((found as { keys: readonly string[] | null }).keys?.length).toBe(result);
    }
  });

  test("make rows with different keys differ", () => {
    expect(outline(`[${object(3)},${object(5_000)}]`)).toEqual({ kind: "mixed" });
  });
});

describe("the positions of the values of rows", () => {
  test.each([
    ['[{"a":1}]', { keys: ["a"], values: ["1"] }],
    [
      ' [ {"b" : "x" , "a":[1, 2]},{"b":null,"a":{ "c":-1e5 }} ] ',
      { keys: ["b", "a"], values: ['"x"', "[1, 2]", "null", '{ "c":-1e5 }'] },
    ],
    ['[{"é\\n":"\\""}]', { keys: ["é\n"], values: ['"\\""'] }],
  ])("%s", (text, expected) => {
    expect(grid(text)).toEqual(expected);
  });

  test.each([
    ["there are none", "[]"],
    ["they have no keys", "[{},{}]"],
    ["their keys come in another order", '[{"a":1,"b":2},{"b":3,"a":4}]'],
    ["a key is written in another way", '[{"a":1},{"a" :2,"a":3}]'],
    ["a key comes twice", '[{"a":1,"a":2}]'],
    ["a character has a number, which may be one that Postgres refuses", '[{"a":"\\u0000"}]'],
    ["one of them is very long", `[{"a":"${"x".repeat(300_000)}"}]`],
    ["the text is no UTF-8", Buffer.from('[{"a":"\xff"}]', "latin1")],
  ])("are not returned if %s", (_when, text) => {
    expect(outline(text).kind).toBe("rows");
    expect(grid(text)).toBeNull();
  });
});

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}
