import { expect, test } from "vitest";
import { memoizeParser } from "../../../../rest-gateway/table/parse/memoize-parser.ts";

test("a parser remembers many short texts, or a few long ones", () => {
  const parse = memoizeParser((text) => ({ text }));
  const rememberedOf = (texts: readonly string[]) => {
    const parsed = texts.map(parse);
    return texts.filter((text, index) => parse(text) === parsed[index]).length;
  };
  const texts = (length: number) => Array.from({ length: 200 }, (_, index) => String(index).padEnd(length, "a"));
  expect(rememberedOf(texts(20))).toBe(200);
  expect(rememberedOf(texts(10_000).slice(0, 20))).toBeLessThan(10);
  expect(rememberedOf(["a".repeat(200_000)])).toBe(0);
});
