import { expect, test } from "vitest";
import { cursorRefs } from "../../../../rest-gateway/openapi/table/parameters.ts";

test("a column or an argument called cursor is described as what it is", () => {
  expect(cursorRefs(["id", "cursors"])).toEqual([{ $ref: "#/components/parameters/cursor" }]);
  expect(cursorRefs(["id", "cursor"])).toEqual([]);
});
