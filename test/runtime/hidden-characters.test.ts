import { expect, test } from "vitest";
import { hasHiddenCharacters, showHiddenCharacters } from "../../runtime/hidden-characters.ts";

const codePoint = (code: number) => String.fromCodePoint(code);
const range = (first: number, last: number) => Array.from({ length: last - first + 1 }, (_, n) => first + n);

test.each([
  ["controls", [...range(0x00, 0x1f), ...range(0x7f, 0x9f)]],
  ["line separators", [0x2028, 0x2029]],
  ["bidirectional marks", [0x061c, 0x200e, 0x200f, ...range(0x202a, 0x202e), ...range(0x2066, 0x2069)]],
  [
    "invisible characters",
    [0x00ad, 0x034f, 0x115f, 0x1160, 0x180e, 0x200b, 0x2060, 0x2800, 0x3164, 0xfeff, 0xffa0, 0xe0041],
  ],
  ["joiners between Latin letters", [0x200c, 0x200d, 0xfe0e, 0xfe0f]],
])("%s are hidden, and are shown as replaced", (_what, codes) => {
  for (const code of codes) {
    const name = `Fil${codePoint(code)}ms`;
    expect([code, hasHiddenCharacters(name), showHiddenCharacters(name)]).toEqual([code, true, "Fil\ufffdms"]);
  }
});

test.each([
  "Films & Co.",
  "Übersetzung",
  "映画",
  "فیلم\u200cها",
  "हिन्\u200dदी",
  "אפליקציה",
  "👩\u200d💻 ❤\ufe0f 1\ufe0f\u20e3 👍🏽",
  "",
])("%j has none", (name) => {
  expect(hasHiddenCharacters(name)).toBe(false);
  expect(showHiddenCharacters(name)).toBe(name);
});
