import fc from "fast-check";
import { expect, test } from "vitest";
import { readJsonMembers } from "../../../runtime/json/json-values.ts";

test.each<[string, readonly (readonly [string, string])[]]>([
  ["{}", []],
  [" { } ", []],
  ['{"org":9007199254740993}', [["org", "9007199254740993"]]],
  [
    '{ "a" : 1.0 , "b":[1, {"c":"},"}] }',
    [
      ["a", "1.0"],
      ["b", '[1, {"c":"},"}]'],
    ],
  ],
  ['{"a":1,"a":{"b":2}}', [["a", '{"b":2}']]],
  [
    '{"\\u0061":"\\"","":null}',
    [
      ["a", '"\\""'],
      ["", "null"],
    ],
  ],
  [
    '{"__proto__":true,"a\\\\":"\\\\"}',
    [
      ["__proto__", "true"],
      ["a\\", '"\\\\"'],
    ],
  ],
])("%s has members", (text, members) => {
  expect([...readJsonMembers(text)]).toEqual(members);
});

test("each member of an object is its value, with any whitespace", () => {
  fc.assert(
    fc.property(fc.dictionary(fc.string(), fc.jsonValue()), fc.constantFrom("", " ", "\n\t"), (object, space) => {
      const members = readJsonMembers(JSON.stringify(object, null, space));
      expect([...members.keys()].sort()).toEqual(Object.keys(object).sort());
      for (const [name, text] of members) expect(JSON.parse(text)).toEqual(JSON.parse(JSON.stringify(object[name])));
    }),
  );
});
