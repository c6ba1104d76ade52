import { expect, test } from "vitest";
import { isJsonObject } from "../../../runtime/json/json-values.ts";

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
