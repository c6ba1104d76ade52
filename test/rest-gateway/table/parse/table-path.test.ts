import { describe, expect, test } from "vitest";
import { checkMethod, parseProfile, parseResource } from "../../../../rest-gateway/table/parse/request.ts";
import { parseErrorOf } from "./parse-error.ts";

const root = { rootFunction: null, describesItself: true };

describe("paths", () => {
  test.each([
    ["", { kind: "root" }],
    ["/", { kind: "root" }],
    ["/films", { kind: "table", name: "films" }],
    ["/Server%20Today", { kind: "table", name: "Server Today" }],
    ["/a+b%2Fc", { kind: "table", name: "a+b/c" }],
    ["/rpc", { kind: "table", name: "rpc" }],
    ["/rpc/add", { kind: "function", name: "add" }],
    ["/rpc/%C3%A9", { kind: "function", name: "é" }],
  ])("%s", (path, resource) => {
    expect(parseResource(path, root)).toEqual(resource);
  });

  test.each(["/films/", "/films/1", "/rpc/add/1", "//", "/a/b/c"])("%s has no route", (path) => {
    expect(parseErrorOf(() => parseResource(path, root))).toEqual({
      status: 404,
      code: "PGRST125",
      message: "Invalid path specified in request URL",
      details: null,
      hint: null,
    });
  });

  test("a function may be the root", () => {
    expect(parseResource("/", { ...root, rootFunction: "home" })).toEqual({ kind: "function", name: "home" });
  });

  test("the root may be disabled", () => {
    expect(parseErrorOf(() => parseResource("/", { ...root, describesItself: false }))).toMatchObject({
      status: 404,
      code: "PGRST126",
      message: "Root endpoint metadata is disabled",
    });
  });
});

describe("methods", () => {
  const table = { kind: "table", name: "films" } as const;
  const routine = { kind: "function", name: "add" } as const;

  test.each(["GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE"])("a table has %s", (method) => {
    expect(() => checkMethod(table, method)).not.toThrow();
  });

  test.each(["TRACE", "FOO", "get"])("a table does not have %s", (method) => {
    expect(parseErrorOf(() => checkMethod(table, method))).toMatchObject({
      status: 405,
      code: "PGRST117",
      message: `Unsupported HTTP method: ${method}`,
    });
  });

  test.each(["PUT", "PATCH", "DELETE"])("a function does not have %s", (method) => {
    expect(parseErrorOf(() => checkMethod(routine, method))).toMatchObject({
      status: 405,
      code: "PGRST101",
      message: `Cannot use the ${method} method on RPC`,
    });
  });

  test("the root is read-only", () => {
    expect(parseErrorOf(() => checkMethod({ kind: "root" }, "POST"))).toMatchObject({ status: 405, code: "PGRST117" });
  });
});

describe("profiles", () => {
  test("the first schema is the default, which the response names if there are others", () => {
    expect(parseProfile(undefined, ["api"])).toEqual({ schema: "api", negotiated: false });
    expect(parseProfile(undefined, ["api", "other"])).toEqual({ schema: "api", negotiated: true });
  });

  test("a header names one of the exposed schemas", () => {
    expect(parseProfile("other", ["api", "other"])).toEqual({ schema: "other", negotiated: true });
    expect(parseProfile("api", ["api"])).toEqual({ schema: "api", negotiated: true });
  });

  test("an unexposed schema is refused, whether it exists or not", () => {
    expect(parseErrorOf(() => parseProfile("private", ["api", "other"]))).toEqual({
      status: 406,
      code: "PGRST106",
      message: "Invalid schema: private",
      details: null,
      hint: "Only the following schemas are exposed: api, other",
    });
  });
});
