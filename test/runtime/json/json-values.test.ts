import fc from "fast-check";
import { expect, test } from "vitest";
import { isExactNumber, isJsonObject, parseJsonExactly, toAddressText } from "../../../runtime/json/json-values.ts";
import { propertyRuns } from "../../property-runs.ts";

test.each([
  "1",
  "12345678901234567890",
  "1.0",
  "1e400",
  "-0",
  "0.1",
  '[9007199254740993,{"a":1.50}]',
  '"12345678901234567890"',
])("%s is written as it was read", (text) => {
  expect(JSON.stringify(parseJsonExactly(text))).toBe(text);
});

test("numbers that JavaScript represents exactly are numbers", () => {
  expect(parseJsonExactly("[1, -2.5, 1e3]")).toMatchObject([1, -2.5, { rawJSON: "1e3" }]);
  expect([isExactNumber(parseJsonExactly("1.0")), isExactNumber(1), isExactNumber({ rawJSON: "1" })]).toEqual([
    true,
    false,
    false,
  ]);
});

test("any JSON is written as it was read", () => {
  fc.assert(
    fc.property(
      fc.jsonValue(),
      (value) => JSON.stringify(parseJsonExactly(JSON.stringify(value))) === JSON.stringify(value),
    ),
  );
});

test("any number is written as it was read, at any depth", () => {
  const digits = fc.stringMatching(/^\d{1,20}$/);
  const number = fc
    .tuple(
      fc.constantFrom("", "-"),
      fc.oneof(fc.constant("0"), fc.bigInt({ min: 1n }).map(String)),
      fc.option(digits),
      fc.option(fc.tuple(fc.constantFrom("e", "E", "e+", "e-"), digits)),
    )
    .map(
      ([sign, whole, fraction, exponent]) =>
        `${sign}${whole}${fraction === null ? "" : `.${fraction}`}${exponent?.join("") ?? ""}`,
    );
  const place = fc.constantFrom(["", ""], [" ", "\n"], ["[", "]"], ["[0,", ",1]"], ['{"a":', "}"], ['{"a": ', " }"]);
  fc.assert(
    fc.property(number, place, (text, [before, after]) => {
      const json = `${before}${text}${after}`;
      return JSON.stringify(parseJsonExactly(json)) === json.replace(/\s/g, "");
    }),
    { numRuns: propertyRuns(2_000) },
  );
});

test("a value has a text for URLs", () => {
  expect([parseJsonExactly("12345678901234567890"), 7, "a/b", true].map(toAddressText)).toEqual([
    "12345678901234567890",
    "7",
    "a/b",
    "true",
  ]);
});

test.each([
  ["{}", true],
  ['{"a": 1}', true],
  ["[]", false],
  ["null", false],
  ['"text"', false],
  ["7", false],
])("whether %s is an object: %s", (json, is) => {
  expect(isJsonObject(JSON.parse(json))).toBe(is);
});
