import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { JsonElementReader } from "../../../../studio/tables/transfer/json-elements.ts";
import "../../../property-runs.ts";

function readAll(pieces: readonly string[]) {
  const reader = new JsonElementReader();
  const elements = pieces.flatMap((piece) => reader.read(piece));
  reader.end();
  return elements;
}

describe("the elements of a JSON array", () => {
  test("keep their digits and have the number of their line", () => {
    expect(readAll(['[ {"a": 12345678901234567890},\n', ' {"b": "]},\\"["}\n]\n'])).toEqual([
      { line: 1, text: '{"a": 12345678901234567890}' },
      { line: 2, text: '{"b": "]},\\"["}' },
    ]);
  });

  test("are those that JSON.parse finds, wherever the text is cut", () => {
    fc.assert(
      fc.property(fc.array(fc.jsonValue()), fc.boolean(), fc.integer({ min: 1, max: 20 }), (values, isPretty, size) => {
        const text = JSON.stringify(values, null, isPretty ? 2 : 0);
        const pieces = Array.from({ length: Math.ceil(text.length / size) }, (_, at) =>
          text.slice(at * size, (at + 1) * size),
        );
        expect(readAll(pieces).map((element) => JSON.parse(element.text))).toEqual(JSON.parse(text));
      }),
    );
  });

  test.each(["", "{}", "[1", '["a', "[1] 2"])("of %j are refused, as it is no array", (text) => {
    expect(() => readAll([text])).toThrow(/No JSON array in line 1/);
  });
});
