import { generateKeyPairSync, type KeyObject } from "node:crypto";
import { describe, expect, test } from "vitest";
import {
  claimPath,
  flag,
  headerName,
  integer,
  list,
  origins,
  postgresUrl,
  privateKey,
  trustProxy,
} from "../../../engine/config/readers.ts";

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

  test("a header's name is any but one that says where a message ends", () => {
    expect(headerName("X-Request-Id")).toBe("X-Request-Id");
    for (const name of ["", "a b", "a:", "é", "Content-Length", "transfer-encoding", "Connection"]) {
      expect(() => headerName(name)).toThrow("a header's name");
    }
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

  test("a private key may be written on one line, or with the line ends of Windows", () => {
    const { privateKey: key } = generateKeyPairSync("rsa", { modulusLength: 2048 });
    const pem = key.export({ type: "pkcs8", format: "pem" }) as string;
    expect(privateKey(pem.replaceAll("\n", "\\n"))).toBe(pem);
    expect(privateKey(pem.replaceAll("\n", "\r\n"))).toBe(pem);
  });

  test.each([
    ["secret", () => "secret"],
    ["garbage in PEM form", () => "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"],
    ["an elliptic key", () => pemOf(generateKeyPairSync("ec", { namedCurve: "P-256" }))],
    ["a short key", () => pemOf(generateKeyPairSync("rsa", { modulusLength: 1024 }))],
  ])("a private key is not: %s", (_what, make) => {
    expect(() => privateKey(make())).toThrow("an RSA private key of at least 2048 bits");
  });

  test.each(["foo", "10.0.0.0/33", "1.2.3", "::1/129", "10.0.0.0/8/8"])("trustProxy refuses %s", (text) => {
    expect(() => trustProxy(text)).toThrow("addresses such as loopback");
  });

  test.each(["postgres://db", "postgres://u@db:99999/app", "postgres://u@db/", "http://db/app"])(
    "postgresUrl refuses %s",
    (text) => {
      expect(() => postgresUrl(text)).toThrow("a connection string like");
    },
  );

  test.each(["postgresql://u:p%40ss@db:5432/app?sslmode=require", "postgresql://u@/app?host=%2Ftmp&port=5433"])(
    "postgresUrl reads %s",
    (text) => {
      expect(postgresUrl(text)).toBe(text);
    },
  );
});

function pemOf({ privateKey: key }: { privateKey: KeyObject }): string {
  return key.export({ type: "pkcs8", format: "pem" }) as string;
}
