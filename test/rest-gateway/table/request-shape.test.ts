import { describe, expect, test } from "vitest";
import { requestShape } from "../../../rest-gateway/table/request-shape-cache.ts";
import { parseErrorOf } from "./parse/parse-error.ts";

function form(line: string, headers: Record<string, string> = {}) {
  const [method = "", url = ""] = line.split(" ");
  const [path = "", rawQuery = ""] = url.split("?");
  return requestShape({ method, path, rawQuery, headers });
}

describe("the shape of a request", () => {
  test.each([
    ["/films?id=eq.5", "/films?id=eq.7", ["7"]],
    ["/films?id=eq.5&select=id,name&order=id&limit=3", "/films?id=eq.&select=id,name&order=id&limit=3", [""]],
    ["/films?a=neq.1&b=not.gte.2&c=lt.3", "/films?a=neq.x.y&b=not.gte.(z)&c=lt.*", ["x.y", "(z)", "*"]],
    ["/films?name=eq.a", "/films?name=eq.%C3%A4+b%26", ["ä b&"]],
    ["/films?order=eq.1&not=eq.5", "/films?order=eq.1&not=eq.6", ["6"]],
  ])("%s and %s differ in their values only", (one, other, values) => {
    expect(form(`GET ${other}`)!.values).toEqual(values);
    expect(form(`GET ${other}`)!.text).toBe(form(`GET ${one}`)!.text);
  });

  test.each([
    ["another table", "GET /films?id=eq.5", "GET /books?id=eq.5"],
    ["another method", "GET /films?id=eq.5", "HEAD /films?id=eq.5"],
    ["another column", "GET /films?id=eq.5", "GET /films?no=eq.5"],
    ["another operator", "GET /films?id=eq.5", "GET /films?id=neq.5"],
    ["its opposite", "GET /films?id=eq.5", "GET /films?id=not.eq.5"],
    ["another page", "GET /films?id=gt.5&limit=1", "GET /films?id=gt.5&limit=2"],
    ["another selection", "GET /films?id=gt.5&select=a", "GET /films?id=gt.5&select=b"],
    ["another order", "GET /films?a=gt.5&b=lt.5", "GET /films?b=lt.5&a=gt.5"],
    ["one filter more", "GET /films?a=gt.5", "GET /films?a=gt.5&a=gt.5"],
  ])("%s has another shape", (_what, one, other) => {
    expect(form(one)!.text).not.toBe(form(other)!.text);
  });

  test.each(["accept", "prefer", "range", "accept-profile"])("differs with another %s", (name) => {
    const texts = [{}, { [name]: "a" }, { [name]: "b" }, { [name]: "undefined" }, { [name]: "" }].map(
      (headers) => form("GET /films?id=eq.5", headers)!.text,
    );
    expect(new Set(texts).size).toBe(5);
  });

  test.each([
    "POST /films?id=eq.5",
    "GET /rpc/add?a=eq.5",
    "GET /",
    "GET /films?id=in.(1,2)",
    "GET /films?id=is.null",
    "GET /films?id=like.a*",
    "GET /films?id=eq(any).{1}",
    "GET /films?id=EQ.5",
    "GET /films?id=5",
    "GET /films?data->a=eq.5",
    "GET /films?author.name=eq.5",
    "GET /films?author.order=eq.5",
    "GET /films?or=eq.5",
    "GET /films?and=(a.eq.1,b.eq.2)",
    "GET /films?cursor=eq.5",
    "GET /films?columns=eq.5",
    "GET /films?apikey=eq.5",
    "GET /films?order=at.distance((0,0))",
    "GET /films?order=gt.distance((0,0))",
    "GET /films?select=eq.cosine([1,2])&id=eq.5",
    "GET /films?select=not.eq.cosine%28[1,2])",
    "GET /films?limit=lt.cosine(1)",
    "GET /films?order=at.distance%28%280,0%29%29",
    "GET /films?id=eq.5;name=eq.6",
    "GET /films?id=eq.5&",
    "GET /f%69lms?id=eq.5",
  ])("%s is parsed completely", (line) => {
    expect(form(line)).toBeNull();
  });

  test("a value that is not text is refused as usual", () => {
    expect(parseErrorOf(() => form("GET /films?id=eq.%ff"))).toMatchObject({ status: 400, code: "22021" });
  });
});
