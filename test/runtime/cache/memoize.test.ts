import { expect, test } from "vitest";
import { memoizeRecent } from "../../../runtime/cache/memoize.ts";

test("returns a recent result without computing it again", () => {
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

test("caches no errors", () => {
  let times = 0;
  const refuse = memoizeRecent(10, (): string => {
    throw new Error(`refused ${++times} times`);
  });
  expect(() => refuse("x")).toThrow("refused 1 times");
  expect(() => refuse("x")).toThrow("refused 2 times");
});
