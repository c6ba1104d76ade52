import { expect, test } from "vitest";
import { quotedName } from "../../../postgres/client/quoted-name.ts";

test("a name with any characters is quoted, and its parts are joined", () => {
  expect(quotedName("articles")).toBe('"articles"');
  expect(quotedName("public", 'odd "name".here')).toBe('"public"."odd ""name"".here"');
});
