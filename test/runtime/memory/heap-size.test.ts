import { once } from "node:events";
import { Worker } from "node:worker_threads";
import { expect, test } from "vitest";
import { heapSize } from "../../../runtime/memory/byte-quota.ts";

/** Measures in a thread of its own, whose heap has nothing else: to collect the garbage of all tests takes seconds. */
const MEASURE = `
  const { parentPort, workerData: { text, times } } = require("node:worker_threads");
  require("node:v8").setFlagsFromString("--expose-gc");
  const collect = require("node:vm").runInNewContext("gc");
  collect();
  const before = process.memoryUsage().heapUsed;
  const kept = Array.from({ length: times }, () => JSON.parse(text));
  collect();
  parentPort.postMessage((process.memoryUsage().heapUsed - before) / kept.length);`;

/** Returns the bytes in use for each of these values in memory. */
async function measured(text: string, times: number): Promise<number> {
  const worker = new Worker(MEASURE, { eval: true, workerData: { text, times } });
  const [bytes] = await once(worker, "message");
  await worker.terminate();
  return bytes;
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
])("many %s take no more than was estimated, and at least a quarter of it", async (_what, text) => {
  const estimate = heapSize(JSON.parse(text));
  const real = await measured(text, Math.ceil(1_500_000 / text.length));
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
