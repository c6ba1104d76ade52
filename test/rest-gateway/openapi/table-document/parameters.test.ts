import { expect, test } from "vitest";
import { referToCursor } from "../../../../rest-gateway/openapi/table-document/parameters.ts";

test("a column or an argument called cursor is described as what it is", () => {
  expect(referToCursor(["id", "cursors"])).toEqual([{ $ref: "#/components/parameters/cursor" }]);
  expect(referToCursor(["id", "cursor"])).toEqual([]);
});
