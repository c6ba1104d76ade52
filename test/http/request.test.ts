import { describe, expect, test } from "vitest";
import { prefersHtml, readMediaRanges } from "../../http/request.ts";

describe("readMediaRanges", () => {
  test.each([
    ["text/csv", ["text/csv"]],
    ["text/csv;q=0.5, application/json;q=0.9", ["application/json", "text/csv"]],
    ["*/*, text/*, text/csv", ["text/csv", "text/*", "*/*"]],
    ["application/json, application/json; version=2", ["application/json;version=2", "application/json"]],
    ["text/csv;\tQ=0.1, text/plain", ["text/plain", "text/csv"]],
    ["text/csv;q=nonsense;x=1", ["text/csv"]],
  ])("%s: the highest quality first, then the most specific range", (accept, types) => {
    expect(readMediaRanges(accept).map(({ type }) => type)).toEqual(types);
  });

  test("an excluded type has the quality 0", () => {
    expect(readMediaRanges("text/csv;q=0, */*")).toEqual([
      { type: "*/*", quality: 1, precision: -2 },
      { type: "text/csv", quality: 0, precision: 0 },
    ]);
  });
});

describe("prefersHtml", () => {
  test.each([
    ["text/html", true],
    ["text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", true],
    ["text/html, */*", true],
    ["text/html, application/json;q=0.9", true],
    ["text/html, application/json", false],
    ["text/html;q=0.9, application/hal+json", false],
    ["text/html;q=0, */*", false],
    ["application/json", false],
    ["*/*", false],
    ["", false],
    [undefined, false],
  ])("Accept: %s: %s", (accept, isPreferred) => {
    expect(prefersHtml(accept === undefined ? {} : { accept })).toBe(isPreferred);
  });
});
