import { describe, expect, test } from "vitest";
import { readLimit, readOffset, readPage } from "../../plugins/PaginationPlugin.ts";

describe("the size of a page", () => {
  test.each([
    [undefined, undefined, { first: 10, last: null }],
    [null, null, { first: 10, last: null }],
    [0, undefined, { first: 0, last: null }],
    [3, undefined, { first: 3, last: null }],
    [3, null, { first: 3, last: null }],
    [5000, undefined, { first: 1000, last: null }],
    [undefined, 3, { first: null, last: 3 }],
    [null, 5000, { first: null, last: 1000 }],
  ])("of first: %j and last: %j", (first, last, page) => {
    expect(readPage(first, last, 1000)).toEqual(page);
  });

  test.each([
    [undefined, 10],
    [null, 10],
    [0, 0],
    [7, 7],
    [5000, 1000],
  ])("of limit: %j", (limit, read) => {
    expect(readLimit(limit, 1000)).toBe(read);
  });

  test("never exceeds the configured maximum, also by default", () => {
    expect(readPage(undefined, undefined, 4)).toEqual({ first: 4, last: null });
    expect(readLimit(undefined, 4)).toBe(4);
  });

  test.each([
    () => readPage(-1, undefined, 1000),
    () => readPage(undefined, -1, 1000),
    () => readPage(1, 1, 1000),
    () => readLimit(-1, 1000),
    () => readOffset(-1),
  ])("is refused: %s", (read) => {
    expect(read).toThrow(expect.objectContaining({ code: "VALIDATION_ERROR", kind: "invalid" }));
  });

  test("starts at the first row", () => {
    expect([readOffset(undefined), readOffset(null), readOffset(20)]).toEqual([0, 0, 20]);
  });
});
