import pg from "pg";
import { describe, expect, test } from "vitest";
import { errorHeaders } from "../../../http/http-error.ts";
import { ContextError } from "../../../postgres/database/database-errors.ts";
import { toTableError } from "../../../rest-gateway/table/explain-error.ts";

function raised(fields: Partial<pg.DatabaseError>) {
  return toTableError(Object.assign(new pg.DatabaseError(fields.message ?? "", 0, "error"), fields), {
    anonymous: false,
    columnHint: () => null,
  });
}

const TEA = '{"code":"TEA","message":"short and stout"}';
const pgrst = (message: string, detail?: string) => raised({ code: "PGRST", message, ...(detail && { detail }) });

describe("an error raised with sqlstate 'PGRST'", () => {
  test("is the whole response", () => {
    const message = '{"code":"TEA","message":"short and stout","details":"d","hint":null}';
    expect(pgrst(message, '{"status":418,"status_text":"Teapot","headers":{"X-Tea":"green"}}')).toMatchObject({
      status: 418,
      code: "TEA",
      message: "short and stout",
      details: "d",
      hint: null,
      headers: { "X-Tea": "green" },
      reason: "Teapot",
    });
  });

  test.each([
    ["not json", '{"status":418,"headers":{}}', "Invalid JSON value for MESSAGE: 'not json'"],
    ['{"code":"TEA"}', '{"status":418,"headers":{}}', `Invalid JSON value for MESSAGE: '{"code":"TEA"}'`],
    ['{"code":"TEA","message":"m","hint":7}', '{"status":418,"headers":{}}', /^Invalid JSON value for MESSAGE/],
    [TEA, '{"status":418}', `Invalid JSON value for DETAIL: '{"status":418}'`],
    [TEA, '{"status":"418","headers":{}}', /^Invalid JSON value for DETAIL/],
    [TEA, '{"status":100,"headers":{}}', /^Invalid JSON value for DETAIL/],
    [TEA, '{"status":1000,"headers":{}}', /^Invalid JSON value for DETAIL/],
    [TEA, '{"status":418,"headers":{"X-Tea":1}}', /^Invalid JSON value for DETAIL/],
    [TEA, '{"status":418,"headers":{"X-Tea":"green\\r\\nSet-Cookie: a=b"}}', /^Invalid JSON value for DETAIL/],
    [TEA, '{"status":418,"headers":{"X Tea":"green"}}', /^Invalid JSON value for DETAIL/],
    [TEA, '{"status":418,"headers":[]}', /^Invalid JSON value for DETAIL/],
    [TEA, '{"status":418,"headers":{},"status_text":1}', /^Invalid JSON value for DETAIL/],
    [TEA, undefined, "DETAIL is missing in the RAISE statement"],
  ])("of %s with %s is invalid, and the error has the reason", (message, detail, details) => {
    const error = pgrst(message, detail);
    expect(error).toMatchObject({ status: 500, code: "PGRST121" });
    expect(error.details).toMatch(details);
  });
});

describe("a role that does not exist", () => {
  const unknown = (anonymous: boolean) => {
    const fields = { code: "22023", message: 'role "ghost" does not exist' };
    return toTableError(Object.assign(new ContextError(fields.message, 0, "error"), fields), {
      anonymous,
      columnHint: () => null,
    });
  };
  const headers = { "WWW-Authenticate": "Bearer" };

  test("is an error of the token that names it", () => {
    const error = unknown(false);
    expect(error).toMatchObject({ status: 401, code: "22023", message: 'role "ghost" does not exist' });
    expect(errorHeaders(error)).toEqual(headers);
  });

  test("is an error of the configuration for callers without credentials", () => {
    const error = unknown(true);
    expect(error).toMatchObject({ status: 401, code: "PGRST302", message: "Anonymous access is disabled" });
    expect(errorHeaders(error)).toEqual(headers);
  });
});

test("a timeout while the role is set is no error of the token", () => {
  const fields = { code: "57014", message: "canceling statement due to statement timeout" };
  const thrown = Object.assign(new ContextError(fields.message, 0, "error"), fields);
  for (const anonymous of [false, true])
    expect(toTableError(thrown, { anonymous, columnHint: () => null })).toMatchObject({ status: 500, ...fields });
});

describe("an error of Postgres", () => {
  test("is returned in Postgres's words, syntax errors too", () => {
    const message = "more than one row returned by a subquery used as an expression";
    expect(raised({ code: "21000", message })).toMatchObject({ status: 500, code: "21000", message });
    expect(raised({ code: "54001", message: "stack depth limit exceeded" })).toMatchObject({
      status: 500,
      message: "stack depth limit exceeded",
    });
  });

  test("of the server itself is masked", () => {
    expect(raised({ code: "58030", message: "could not read /var/lib/…" })).toMatchObject({
      status: 500,
      message: "Internal error",
    });
  });

  test("401 has a challenge", () => {
    expect(raised({ code: "22023", message: 'role "ghost" does not exist' })).toMatchObject({
      status: 401,
      headers: { "WWW-Authenticate": "Bearer" },
    });
  });
});
