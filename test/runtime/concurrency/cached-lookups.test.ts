import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { cacheLookups } from "../../../runtime/concurrency/batched-lookup.ts";

let questions: string[][];
let fault: Error | null;
const isUnknown = (key: string) => !/^[a-z]+$/.test(key);
const lengths = () =>
  cacheLookups<number>(
    async (keys) => {
      questions.push([...keys]);
      if (fault) throw fault;
      return new Map(keys.flatMap((key) => (isUnknown(key) ? [] : [[key, key.length] as const])));
    },
    { rememberedMs: 1_000, max: 4 },
  );

beforeEach(() => {
  questions = [];
  fault = null;
  vi.useFakeTimers({ toFake: ["performance"] });
});
afterEach(() => vi.useRealTimers());

describe("a cached lookup", () => {
  test("is not repeated for a recent result, even an empty one", async () => {
    const lengthOf = lengths();
    expect(await lengthOf("ab")).toBe(2);
    expect(await lengthOf("")).toBeNull();
    expect(lengthOf("ab")).toBe(2);
    expect(lengthOf("")).toBeNull();
    expect(questions).toEqual([["ab"], [""]]);
    vi.advanceTimersByTime(1_000);
    expect(await lengthOf("ab")).toBe(2);
    expect(questions).toHaveLength(3);
  });

  test("is one query for many keys", async () => {
    const lengthOf = lengths();
    const keys = ["a", "bb", "ccc", "bb"];
    expect(await Promise.all(keys.map((key) => lengthOf(key)))).toEqual([1, 2, 3, 2]);
    expect(questions).toEqual([["a", "bb", "ccc"]]);
  });

  test("is repeated after an error", async () => {
    const lengthOf = lengths();
    fault = new Error("away");
    await expect(lengthOf("a")).rejects.toThrow("away");
    fault = null;
    expect(await lengthOf("a")).toBe(1);
  });

  test("evicts the oldest entry at the maximum size", async () => {
    const lengthOf = lengths();
    for (const key of ["a", "b", "c", "d", "e"]) await lengthOf(key);
    expect(lengthOf("d")).toBe(1);
    expect(lengthOf("a")).toBeInstanceOf(Promise);
  });

  test("evicts no known key for unknown ones, however many", async () => {
    const lengthOf = lengths();
    expect(await lengthOf("a")).toBe(1);
    for (let guess = 0; guess < 20; guess++) expect(await lengthOf(`guess ${guess}`)).toBeNull();
    expect(lengthOf("a")).toBe(1);
  });

  test("returns the new result when a key becomes known, or unknown", async () => {
    const known = new Map<string, number>();
    const ageOf = cacheLookups<number>(async () => new Map(known), { rememberedMs: 1_000, max: 4 });
    for (const age of [null, 1, null, 2]) {
      if (age === null) known.clear();
      else known.set("a", age);
      expect(await ageOf("a")).toBe(age);
      expect(ageOf("a")).toBe(age);
      vi.advanceTimersByTime(1_000);
    }
  });
});
