import { expect, test } from "vitest";
import { parseDuration, shorterLimit } from "../../../postgres/database/pipelined-batch.ts";

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
  expect(parseDuration(text)).toBe(milliseconds);
});

test.each([
  [5, 30, 5],
  [30, 5, 5],
  [0, 5, 5],
  [5, 0, 5],
  [0, 0, 0],
])("of the limits %i and %i the shorter one is %i; 0 means no limit", (one, other, shortest) => {
  expect(shorterLimit(one, other)).toBe(shortest);
});
