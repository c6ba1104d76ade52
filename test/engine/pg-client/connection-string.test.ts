import { describe, expect, test } from "vitest";
import { findTlsError, toPgConnectionString } from "../../../engine/pg-client/connection-string.ts";

describe("a connection string as pg parses it", () => {
  test.each([
    "postgresql://u:p%40ss@db:5432/app",
    "postgresql://u@/app?host=%2Ftmp&port=5433",
    "postgresql://u@db/app?sslmode=disable",
    "postgresql://u@db/app?sslmode=no-verify",
    "postgresql://u@db/app?sslmode=require&uselibpqcompat=true",
  ])("%s stays as it is", (url) => expect(toPgConnectionString(url)).toBe(url));

  test.each([
    ["require", "postgresql://u@db/app?sslmode=require&uselibpqcompat=true"],
    ["verify-full&sslrootcert=system", "postgresql://u@db/app?sslmode=verify-full&uselibpqcompat=true"],
    [
      "verify-ca&sslrootcert=%2Fa%20b.crt",
      "postgresql://u@db/app?sslmode=verify-ca&sslrootcert=%2Fa+b.crt&uselibpqcompat=true",
    ],
  ])("sslmode=%s is libpq's", (mode, read) =>
    expect(toPgConnectionString(`postgresql://u@db/app?sslmode=${mode}`)).toBe(read),
  );
});

describe("the TLS settings of a connection string", () => {
  const faultOf = (parameters: string) =>
    findTlsError(`postgresql://u@db/app?${parameters}`, (file) => file === "/there");

  test.each([
    "",
    "sslmode=require",
    "sslmode=verify-full&sslrootcert=system",
    "sslrootcert=/there&sslmode=verify-ca",
    "sslcert=/there&sslkey=/there",
  ])("%j can be tried", (parameters) => expect(faultOf(parameters)).toBeNull());

  test.each([
    ["sslmode=prefer", /one of disable, no-verify, require, verify-ca, verify-full/],
    ["sslmode=verify-ca", /needs a file in sslrootcert/],
    ["sslmode=verify-ca&sslrootcert=system", /needs a file/],
    ["sslrootcert=/gone", /file of sslrootcert/],
    ["sslcert=/there&sslkey=/gone", /file of sslkey/],
    ["sslcert=/there", /belong together/],
  ])("%s is refused", (parameters, words) => expect(faultOf(parameters)).toMatch(words));
});
