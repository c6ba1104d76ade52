import { describe, expect, test } from "vitest";
import { type Paging, parsePaging, windowOf } from "../../../../rest-gateway/resource/parse/parameters.ts";

const PLAIN = { notFound: "USER_NOT_FOUND" };
const parse = (query: string, plain: typeof PLAIN | null) => {
  const parameters = new URLSearchParams(query);
  return parsePaging((name) => parameters.get(name) ?? undefined, { plain, maxPageSize: 100 });
};

describe("the parameters of a request select the format of a list", () => {
  test.each<[query: string, plain: Paging, general: Paging]>([
    ["", { kind: "plain", skip: 0, limit: 10 }, { kind: "page", page: 1, limit: 20 }],
    ["limit=5", { kind: "plain", skip: 0, limit: 5 }, { kind: "page", page: 1, limit: 5 }],
    ["limit=500", { kind: "plain", skip: 0, limit: 100 }, { kind: "page", page: 1, limit: 100 }],
    ["limit=99999999999999999999", { kind: "plain", skip: 0, limit: 100 }, { kind: "page", page: 1, limit: 100 }],
    ["skip=3", { kind: "plain", skip: 3, limit: 10 }, { kind: "window", skip: 3, limit: 20 }],
    ["envelope=true", { kind: "window", skip: 0, limit: 10 }, { kind: "window", skip: 0, limit: 20 }],
    ["envelope=false", { kind: "plain", skip: 0, limit: 10 }, { kind: "page", page: 1, limit: 20 }],
    ["page=2", { kind: "page", page: 2, limit: 10 }, { kind: "page", page: 2, limit: 20 }],
    ["page=2&limit=3", { kind: "page", page: 2, limit: 3 }, { kind: "page", page: 2, limit: 3 }],
    ["size=7", { kind: "slice", page: 0, size: 7 }, { kind: "slice", page: 0, size: 7 }],
    ["size=99999999999999999999", { kind: "slice", page: 0, size: 100 }, { kind: "slice", page: 0, size: 100 }],
    ["page=2&size=7", { kind: "slice", page: 2, size: 7 }, { kind: "slice", page: 2, size: 7 }],
  ])("%s", (query, plain, general) => {
    expect([parse(query, PLAIN), parse(query, null)]).toEqual([plain, general]);
  });
});

test.each([
  "page=0",
  "page=-1",
  "limit=x",
  "skip=1.5",
  "skip=99999999999999999999",
  "page=99999999999999999999",
  "size=+1",
  "limit=1&size=1",
  "skip=1&size=1",
  "skip=0&page=1",
  "envelope=1",
])("%s is refused", (query) => {
  expect(() => parse(query, null)).toThrow(expect.objectContaining({ status: 400, code: "VALIDATION_ERROR" }));
});

test("a page number that is too large is refused", () => {
  const parse = (parameters: Record<string, string>) => () =>
    parsePaging((name) => parameters[name], { plain: null, maxPageSize: 100_000 });
  const page = String(Number.MAX_SAFE_INTEGER);
  const refusal = expect.objectContaining({ status: 400, details: [{ field: "page", message: expect.any(String) }] });
  for (const name of ["limit", "size"]) {
    expect(parse({ page, [name]: "100000" })).toThrow(refusal);
    expect(parse({ page, [name]: "1000" })).not.toThrow();
  }
});

test("a page begins where the previous one ends", () => {
  expect(windowOf({ kind: "page", page: 3, limit: 20 })).toEqual({ offset: 40, limit: 20 });
  expect(windowOf({ kind: "slice", page: 3, size: 20 })).toEqual({ offset: 60, limit: 20 });
  expect(windowOf({ kind: "plain", skip: 5, limit: 2 })).toEqual({ offset: 5, limit: 2 });
});
