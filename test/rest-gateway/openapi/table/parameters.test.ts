import { expect, test } from "vitest";
import { unreservedRefs } from "../../../../rest-gateway/openapi/table/components.ts";

test("a column or an argument with the name cursor is described as such", () => {
  expect(unreservedRefs(["id", "cursors"], "cursor")).toEqual([{ $ref: "#/components/parameters/cursor" }]);
  expect(unreservedRefs(["id", "cursor"], "cursor")).toEqual([]);
});
