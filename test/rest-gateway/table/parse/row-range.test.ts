import { describe, expect, test } from "vitest";
import type { RowRange } from "../../../../planner/intent/intent.ts";
import { parseBound, parseRanges } from "../../../../rest-gateway/table/parse/query-parameters.ts";
import { parseErrorOf } from "./parse-error.ts";

type TestRequest = { limit?: number; offset?: number; range?: string; method?: string };

function parse({ limit, offset, range, method = "GET" }: TestRequest) {
  return parseRanges([{ path: [], limit: limit ?? null, offset: offset ?? null }], { method, range });
}

const NEGATIVE = "Limit should be greater than or equal to zero.";
const REVERSED = "The lower boundary must be lower than or equal to the upper boundary in the Range header.";

describe("the requested range of rows", () => {
  test.each<[TestRequest, RowRange | null]>([
    [{}, null],
    [{ offset: 0 }, null],
    [{ offset: -4 }, null],
    [{ limit: 3 }, { offset: 0, limit: 3 }],
    [
      { limit: 3, offset: 2 },
      { offset: 2, limit: 3 },
    ],
    [{ offset: 2 }, { offset: 2, limit: null }],
    [{ limit: 0 }, { offset: 0, limit: 0 }],
    [{ range: "0-9" }, { offset: 0, limit: 10 }],
    [{ range: "10-10" }, { offset: 10, limit: 1 }],
    [{ range: "5-" }, { offset: 5, limit: null }],
    [{ range: "0-" }, null],
    [{ range: "bytes=0-9" }, null],
    [{ range: "-5" }, null],
    [
      { range: "0-1", limit: 3 },
      { offset: 0, limit: 2 },
    ],
    [
      { range: "0-9", limit: 3, offset: 2 },
      { offset: 2, limit: 3 },
    ],
    [
      { range: "3-9", offset: 1 },
      { offset: 3, limit: 7 },
    ],
    [
      { range: "0-9", limit: 0 },
      { offset: 0, limit: 0 },
    ],
    [
      { range: "9-0", limit: 0 },
      { offset: 0, limit: 0 },
    ],
    [{ range: "0-9", method: "HEAD" }, null],
    [{ range: "9-0", method: "POST" }, null],
    [{ offset: 0, method: "PUT" }, null],
  ])("%j", (request, window) => {
    expect(parse(request)).toEqual(window === null ? [] : [{ path: [], value: window }]);
  });

  test.each<[TestRequest, string]>([
    [{ limit: -1 }, NEGATIVE],
    [{ limit: 0, offset: 5 }, NEGATIVE],
    [{ limit: 3, offset: -4 }, NEGATIVE],
    [{ range: "10-20", limit: 5 }, NEGATIVE],
    [{ range: "1-0" }, REVERSED],
    [{ limit: -1, method: "DELETE" }, NEGATIVE],
  ])("%j cannot be satisfied", (request, details) => {
    expect(parseErrorOf(() => parse(request))).toEqual({
      status: 416,
      code: "PGRST103",
      message: "Requested range not satisfiable",
      details,
      hint: null,
    });
  });

  test.each([{ limit: 1 }, { limit: 0 }, { offset: 1 }])("PUT is for one row: %j is refused", (request) => {
    expect(parseErrorOf(() => parse({ ...request, method: "PUT" }))).toMatchObject({ status: 400, code: "PGRST114" });
  });

  test("relations have ranges of their own, which the header does not change", () => {
    const bounds = [
      { path: ["a"], limit: 2, offset: null },
      { path: ["a", "b"], limit: null, offset: 3 },
      { path: ["c"], limit: -1, offset: null },
    ];
    expect(parseRanges(bounds, { method: "GET", range: "0-4" })).toEqual([
      { path: [], value: { offset: 0, limit: 5 } },
      { path: ["a"], value: { offset: 0, limit: 2 } },
      { path: ["a", "b"], value: { offset: 3, limit: null } },
      { path: ["c"], value: { offset: 0, limit: -1 } },
    ]);
  });
});

describe("integers", () => {
  test.each([
    ["5", 5],
    [" 5 ", 5],
    ["-5", -5],
    ["007", 7],
    ["99999999999999999999", Number.MAX_SAFE_INTEGER],
  ])("%s", (text, number) => {
    expect(parseBound(text)).toBe(number);
  });

  test.each(["", "a", "1.5", "1e3", "5 5", "--5"])("%s is not an integer", (text) => {
    expect(parseBound(text)).toBeNull();
  });
});
