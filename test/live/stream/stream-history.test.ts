import { expect, test } from "vitest";
import { toStreamHistory, validUntil } from "../../../live/stream/stream-history.ts";
import { parseLsn } from "../../../postgres/database/lsn.ts";

const SYSTEM = "7565411734812345678";
const first = toStreamHistory(SYSTEM, 1, "");
const second = toStreamHistory(SYSTEM, 2, "1\t0/3000148\tno recovery target specified\n");
const third = toStreamHistory(
  SYSTEM,
  3,
  "1\t0/3000148\tno recovery target specified\n\n2\t1/5000000\tbefore a point\n",
);

test("a position of an ancestor is valid up to where it was left", () => {
  expect(validUntil(second, first.id)).toBe(parseLsn("0/3000148"));
  expect(validUntil(third, first.id)).toBe(parseLsn("0/3000148"));
  expect(validUntil(third, second.id)).toBe(parseLsn("1/5000000"));
});

test("all positions of the same timeline are valid", () => {
  expect(validUntil(third, third.id)).toBeGreaterThan(parseLsn("FFFFFFFF/FFFFFFFF")!);
});

test.each([
  ["a later timeline", second, third.id],
  ["another cluster", second, toStreamHistory("7565411734812345679", 1, "").id],
  ["a timeline of the same number that was left elsewhere", third, toStreamHistory(SYSTEM, 2, "1\t0/3000200\t\n").id],
  ["nothing known", third, ""],
])("no position of %s is valid", (_, history, id) => expect(validUntil(history, id)).toBe(0n));
