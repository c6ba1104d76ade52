import { expect, test } from "vitest";
import { quotedName } from "../../../engine/pg-client/quoted-name.ts";

test("a name is quoted, whatever is in it, and its parts are joined", () => {
  expect(quotedName("articles")).toBe('"articles"');
  expect(quotedName("public", 'odd "name".here')).toBe('"public"."odd ""name"".here"');
});
