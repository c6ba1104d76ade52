import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { expect, test } from "vitest";
import { heapSize } from "../../../runtime/memory/byte-quota.ts";

/** How many bytes are in use with these values in memory, for each of them. */
function measured(text: string, times: number): number {
  setFlagsFromString("--expose-gc");
  const collect: () => void = runInNewContext("gc");
  collect();
  const before = process.memoryUsage().heapUsed;
  const kept = Array.from({ length: times }, () => JSON.parse(text));
  collect();
  return (process.memoryUsage().heapUsed - before) / kept.length;
}

const many = (length: number, spell: (nth: number) => string) => Array.from({ length }, (_, nth) => spell(nth)).join();

test.each([
  ["empty objects", `[${many(50_000, () => "{}")}]`],
  ["empty lists", `[${many(50_000, () => "[]")}]`],
  ["names", `{${many(20_000, (nth) => `"name${nth}":1`)}}`],
  ["objects that have different names", `[${many(5_000, (nth) => `{"a${nth}":1,"b${nth}":"x"}`)}]`],
  ["letters", JSON.stringify("x".repeat(200_000))],
  ["letters beyond Latin", JSON.stringify("€".repeat(200_000))],
  ["numbers", `[${many(50_000, (nth) => String(nth / 3))}]`],
  ["texts", `[${many(50_000, (nth) => `"text ${nth}"`)}]`],
])("many %s take no more than was estimated, and at least a quarter of it", (_what, text) => {
  const estimate = heapSize(JSON.parse(text));
  const real = measured(text, Math.ceil(1_500_000 / text.length));
  expect(real).toBeLessThan(estimate * 1.1);
  expect(real).toBeGreaterThan(estimate / 4);
});

test("values that are nested deeper than the call stack are measured all the same", () => {
  const levels = 300_000;
  expect(heapSize(JSON.parse(`${"[".repeat(levels)}${"]".repeat(levels)}`))).toBeGreaterThan(levels * 16);
});

test("null and booleans take no memory of their own", () => {
  for (const value of [null, undefined, true, false]) expect(heapSize(value)).toBe(0);
});
