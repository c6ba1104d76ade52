import { expect, test } from "vitest";
import { readDuration } from "../../../engine/database/duration.ts";

test.each([
  ["8000", 8_000],
  ["0", 0],
  ["8s", 8_000],
  ["1.5 min", 90_000],
  ["250ms", 250],
  ["500us", 0.5],
  ["2h", 7_200_000],
  ["1d", 86_400_000],
  ["soon", null],
  ["8 weeks", null],
  ["", null],
])("%s is %s milliseconds", (text, milliseconds) => {
  expect(readDuration(text)).toBe(milliseconds);
});
