import { describe, expect, test } from "vitest";
import { claimPath, flag, integer, list, origins, privateKey, trustProxy } from "../../../engine/config/readers.ts";

describe("readers", () => {
  test.each([
    [".role", ["role"]],
    [".app_metadata.role", ["app_metadata", "role"]],
    ['."https://example.com/roles"[0]', ["https://example.com/roles", 0]],
  ])("claimPath reads %s", (text, steps) => {
    expect(claimPath(text)).toEqual(steps);
  });

  test.each(["role", "", ".", ".a..b", '."open', ".a[x]"])("claimPath refuses %j", (text) => {
    expect(() => claimPath(text)).toThrow("a path such as");
  });

  test.each(["1e3", "0x10", "", " ", "1.5", "70000", "-1"])("integer refuses %j", (text) => {
    expect(() => integer(0, 65_535)(text)).toThrow("a whole number from 0 to 65535");
  });

  test.each([
    ["yes", true],
    ["ON", true],
    ["0", false],
    ["False", false],
  ])("flag reads %s", (text, value) => {
    expect(flag(text)).toBe(value);
  });

  test("list drops what is empty", () => {
    expect(list(" api , ,public,")).toEqual(["api", "public"]);
  });

  test("origins are whole origins, or all", () => {
    expect(origins("*")).toBe("*");
    expect(origins("https://a.example, http://localhost:5173")).toEqual(["https://a.example", "http://localhost:5173"]);
    expect(() => origins("https://a.example/path")).toThrow("origins such as");
  });

  test.each([
    ["1", 1],
    ["true", true],
    ["loopback, 10.0.0.0/8", ["loopback", "10.0.0.0/8"]],
  ])("trustProxy reads %s as Express does", (text, value) => {
    expect(trustProxy(text)).toEqual(value);
  });

  test("a private key may be written on one line, as environment files need it", () => {
    const pem = "-----BEGIN PRIVATE KEY-----\\nAAAA\\n-----END PRIVATE KEY-----";
    expect(privateKey(pem)).toBe("-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----");
    expect(() => privateKey("secret")).toThrow("PEM");
  });
});
