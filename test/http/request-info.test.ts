import { expect, test } from "vitest";
import { readCookie, readCookies, requestInfoOf } from "../../http/request-info.ts";

const shown = { id: "r1", method: "POST", path: "/x" };

test("the settings of a request are those of PostgREST, with cookies apart from the other headers", () => {
  const headers = { accept: "*/*", "x-note": "Ã©", cookie: 'a=1; b="2"; c=x=y; d=Ã©; ;' };
  expect(requestInfoOf("graphql", { ...shown, headers })).toEqual({
    interface: "graphql",
    requestId: "r1",
    method: "POST",
    path: "/x",
    headers: '{"accept":"*/*","x-note":"é"}',
    cookies: '{"a":"1","b":"\\"2\\"","c":"x=y","d":"é"}',
  });
  expect(requestInfoOf("table", { ...shown, headers: {} })).toMatchObject({ headers: "{}", cookies: "{}" });
});

test("of two cookies with one name the first wins, and a value may contain any characters", () => {
  expect(readCookies("a=1; b=x=y; a=2; ; =3; c")).toEqual({ a: "1", b: "x=y", c: "" });
  expect(readCookie("a=1; a=2", "a")).toBe("1");
});

test.each([
  [undefined, "a"],
  ["", "a"],
  ["a=", "a"],
  ["ab=1", "a"],
  ["a=1", "toString"],
])("%j has no cookie %s", (header, name) => {
  expect(readCookie(header, name)).toBeNull();
});
