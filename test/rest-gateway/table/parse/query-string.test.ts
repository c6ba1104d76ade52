import { describe, expect, test } from "vitest";
import {
  canonicalQueryString,
  decodePercent,
  parseQueryString,
  queryWithoutApiKey,
} from "../../../../rest-gateway/table/parse/query-string.ts";
import { parseErrorOf } from "./parse-error.ts";

describe("query strings", () => {
  test.each([
    ["", []],
    [
      "a=1&b=2",
      [
        ["a", "1"],
        ["b", "2"],
      ],
    ],
    [
      "a=1;b=2",
      [
        ["a", "1"],
        ["b", "2"],
      ],
    ],
    [
      "a=1&a=2",
      [
        ["a", "1"],
        ["a", "2"],
      ],
    ],
    [
      "a=&=b",
      [
        ["a", ""],
        ["", "b"],
      ],
    ],
    ["a&&b=", [["b", ""]]],
    ["a=b=c", [["a", "b=c"]]],
    ["a+b=c+d%2Be", [["a b", "c d+e"]]],
    ["%61=%C3%A9%F0%9F%98%80", [["a", "é😀"]]],
    ["a=%26%3B%3D%25", [["a", "&;=%"]]],
    [
      "a=100%&b=%zz%4",
      [
        ["a", "100%"],
        ["b", "%zz%4"],
      ],
    ],
    ["a=50%25+%C3%A9%", [["a", "50% é%"]]],
  ])("%s is split before it is decoded", (text, parameters) => {
    expect(parseQueryString(text)).toEqual(parameters);
  });

  test.each(["a=%FF", "a=%C3", "%ED%A0%80=1"])("%s is not UTF-8", (text) => {
    expect(parseErrorOf(() => parseQueryString(text))).toMatchObject({ status: 400, code: "22021" });
  });

  test("a null character is refused, because Postgres does not store it", () => {
    expect(parseErrorOf(() => parseQueryString("select=%22a%00b%22:id"))).toMatchObject({ status: 400, code: "22021" });
  });

  test("a plus sign stays a plus sign outside of the query", () => {
    expect(decodePercent("a+b%2B%20c")).toBe("a+b+ c");
  });

  test("the canonical form is sorted by name, with each name once", () => {
    const parameters = parseQueryString("select=id,name&b=eq.1&a=eq.x%20y&b=eq.2&c=not.is.null");
    expect(canonicalQueryString(parameters)).toBe("a=eq.x%20y&b=eq.1,eq.2&c=not.is.null&select=id%2Cname");
  });
});

describe("the query of a request, for any caller", () => {
  test("is the same with the key in the URL as in its header", () => {
    expect(queryWithoutApiKey({}, "apikey=secret&select=id")).toBe("select=id");
    expect(queryWithoutApiKey({}, "select=id&apikey=secret")).toBe("select=id");
    expect(queryWithoutApiKey({}, "select=id;apikey=secret;limit=1")).toBe("select=id&limit=1");
    expect(queryWithoutApiKey({ apikey: "secret" }, "select=id")).toBe("select=id");
    expect(queryWithoutApiKey({}, "apikey=secret")).toBe("");
  });

  test("keeps filters on columns with that name", () => {
    expect(queryWithoutApiKey({ apikey: "secret" }, "apikey=eq.a&select=id")).toBe("apikey=eq.a&select=id");
    expect(queryWithoutApiKey({}, "apikey=secret&apikey=eq.a")).toBe("apikey=eq.a");
    expect(queryWithoutApiKey({}, "api_key=eq.a")).toBe("api_key=eq.a");
  });
});
