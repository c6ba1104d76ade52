import { expect, test } from "vitest";
import { memoizeRecent, RecentMap } from "../../../runtime/cache/recent-map.ts";

test("keeps at least the latest half of its maximum, and never more than the maximum", () => {
  const keys = Array.from({ length: 1_000 }, (_, index) => index);
  const filled = () => {
    const map = new RecentMap<number, string>(100);
    for (const key of keys) map.set(key, `value ${key}`);
    return map;
  };
  const latest = filled();
  for (const key of keys.slice(-50)) expect(latest.get(key)).toBe(`value ${key}`);
  const all = filled();
  const found = keys.filter((key) => all.get(key) !== undefined);
  expect(found.length).toBeGreaterThanOrEqual(50);
  expect(found.length).toBeLessThanOrEqual(100);
});

test("keeps entries that are read often", () => {
  const map = new RecentMap<string, string>(4);
  map.set("asked for", "still there");
  map.set("not asked for", "soon gone");
  for (let turn = 0; turn < 20; turn++) {
    map.set(`other ${turn}`, "…");
    expect(map.get("asked for")).toBe("still there");
  }
  expect(map.get("not asked for")).toBeUndefined();
});

test("evicts no other entry when one is renewed often", () => {
  const map = new RecentMap<string, string>(4);
  map.set("quiet", "still there");
  for (let turn = 0; turn < 20; turn++) map.set("busy", `turn ${turn}`);
  expect([map.get("quiet"), map.get("busy")]).toEqual(["still there", "turn 19"]);
});

test("evicts more entries for a large one, and does not store one above the maximum size", () => {
  const map = new RecentMap<string, string>(10, (key) => key.length);
  map.set("a", "light");
  map.set("bbbbb", "heavy");
  expect(map.get("a")).toBe("light");
  map.set("ccccc", "heavy");
  map.set("ddddd", "heavy");
  expect([map.get("a"), map.get("bbbbb")]).toEqual([undefined, undefined]);
  map.set("eleven long", "too heavy");
  expect(map.get("eleven long")).toBeUndefined();
});

test("can be cleared", () => {
  const map = new RecentMap<string, string>(4);
  for (const key of ["a", "b", "c"]) map.set(key, key);
  map.clear();
  expect(["a", "b", "c"].map((key) => map.get(key))).toEqual([undefined, undefined, undefined]);
});

test("a memoized function returns a recent result without computing it again", () => {
  const request: string[] = [];
  const lettersOf = memoizeRecent(10, (word: string) => {
    request.push(word);
    return [...word];
  });
  expect(lettersOf("cat")).toEqual(["c", "a", "t"]);
  expect(lettersOf("cat")).toBe(lettersOf("cat"));
  expect(lettersOf("dog")).toEqual(["d", "o", "g"]);
  expect(request).toEqual(["cat", "dog"]);
});

test("a memoized function caches no errors", () => {
  let times = 0;
  const refuse = memoizeRecent(10, (): string => {
    throw new Error(`refused ${++times} times`);
  });
  expect(() => refuse("x")).toThrow("refused 1 times");
  expect(() => refuse("x")).toThrow("refused 2 times");
});
