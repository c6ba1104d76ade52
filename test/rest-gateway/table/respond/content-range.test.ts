import { describe, expect, test } from "vitest";
import { contentRange, lastRowNumber, rangeStatus } from "../../../../rest-gateway/table/respond/respond.ts";
import { parseErrorOf } from "../parse/parse-error.ts";

const all = { offset: 0, limit: null };

describe("a range of rows", () => {
  test.each([
    [0, 9, 57, "0-9/57"],
    [0, 9, null, "0-9/*"],
    [5, 4, 57, "*/57"],
    [0, 9, 0, "*/0"],
    [0, null, null, "0-*/*"],
    [20, null, 1000, "20-*/1000"],
  ])("from %s to %s of %s is %s", (first, last, total, range) => {
    expect(contentRange(first, last, total)).toBe(range);
  });

  test("ends with its last row, if the number of rows is known", () => {
    expect([lastRowNumber(5, 10), lastRowNumber(5, 0), lastRowNumber(5, null)]).toEqual([14, 4, null]);
  });
});

describe("a page of rows", () => {
  test("is partial if there are more", () => {
    expect(rangeStatus(all, 10, null)).toEqual({ status: 200, range: "0-9/*" });
    expect(rangeStatus(all, 10, 10)).toEqual({ status: 200, range: "0-9/10" });
    expect(rangeStatus({ offset: 2, limit: 5 }, 5, 10)).toEqual({ status: 206, range: "2-6/10" });
  });

  test("whose rows are still streamed is partial if its limit excludes rows", () => {
    expect(rangeStatus(all, null, null)).toEqual({ status: 200, range: "0-*/*" });
    expect(rangeStatus(all, null, 10_000)).toEqual({ status: 200, range: "0-*/10000" });
    expect(rangeStatus({ offset: 0, limit: 9_000 }, null, 10_000).status).toBe(206);
    expect(rangeStatus({ offset: 0, limit: 11_000 }, null, 10_000).status).toBe(200);
    expect(rangeStatus({ offset: 1, limit: null }, null, 10_000)).toEqual({ status: 206, range: "1-*/10000" });
  });

  test("after the last row is refused", () => {
    expect(parseErrorOf(() => rangeStatus({ offset: 11, limit: null }, 0, 10))).toMatchObject({
      status: 416,
      code: "PGRST103",
    });
    expect(rangeStatus({ offset: 10, limit: null }, 0, 10).range).toBe("*/10");
  });
});
