import { expect, test } from "vitest";
import { cursorRefs } from "../../../../rest-gateway/openapi/table/components.ts";

test("a column or an argument with the name cursor is described as such", () => {
  expect(cursorRefs(["id", "cursors"])).toEqual([{ $ref: "#/components/parameters/cursor" }]);
  expect(cursorRefs(["id", "cursor"])).toEqual([]);
});
