import { getOperationAST, parse } from "grafast/graphql";
import { describe, expect, test } from "vitest";
import { estimateResponseBytes, measureAmplification } from "../../../graphql/documents/document-size.ts";

function echo(text: string) {
  const document = parse(text);
  return measureAmplification(getOperationAST(document, null)!, document);
}

describe("how often a value may occur", () => {
  test.each([
    ["once without aliases", "{ user { name articles { id title } } }", 1],
    ["as often as a field has names", "{ user { a: name b: name c: name id } }", 3],
    [
      "as often as lists around it have names, times its own",
      "{ user { x: articles { a: id b: id } y: articles { id } } }",
      3,
    ],
    ["as often as the same question is asked at the root", "{ a: user(id: 1) { name } b: user(id: 1) { name } }", 2],
    ["once where the questions differ", "{ a: user(id: 1) { name } b: user(id: 2) { name } }", 1],
    ["with what fragments add", "{ user { name ...F ...G } } fragment F on U { name } fragment G on U { name }", 3],
    ["however fragments lie in each other", "{ user { ...F } } fragment F on U { a: id b: id ... { c: id } ...F }", 4],
  ])("is %s", (_, text, times) => {
    expect(echo(text).factor).toBe(times);
  });
});

describe("the bytes of names per row", () => {
  test("counts the names in the response", () => {
    expect(echo("{ user { id } }").keyBytes).toBe("user".length + "id".length + 12);
    expect(echo(`{ user { ${"x".repeat(1_000)}: id } }`).keyBytes).toBeGreaterThan(1_000);
  });
});

describe("the estimated size of a response", () => {
  test("counts values per occurrence, and names per row, also in nested lists", () => {
    expect(estimateResponseBytes([["abc", null], ["d"]], { factor: 2, keyBytes: 100 })).toBe(2 * 4 + 2 * 100);
    expect(estimateResponseBytes([['[["1"],["2"]]']], { factor: 1, keyBytes: 100 })).toBe(13 + 4 * 100);
  });
});
