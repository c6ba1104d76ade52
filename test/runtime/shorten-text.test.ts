import { expect, test } from "vitest";
import { shortenText } from "../../runtime/shorten-text.ts";

test.each([
  ["short", 5, "short"],
  ["longer", 5, "longe"],
  ["four😀", 5, "four"],
  ["four😀", 6, "four😀"],
  ["fou😀r", 5, "fou😀"],
  ["😀", 1, ""],
])("%s, at most %i, is %s", (text, maxLength, shortened) => {
  expect(shortenText(text, maxLength)).toBe(shortened);
});
