import { expect, test } from "vitest";
import { readCookie, readCookies } from "../../http/request-info.ts";

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
