import pg from "pg";
import { describe, expect, test } from "vitest";
import { toChannelReason, toEnvelope, toGraphQLBody, toTableBody } from "../../http/error-bodies.ts";
import { errorCodeOf, errorHeaders, HttpError, toHttpError } from "../../http/http-error.ts";
import { ApiError, CREDENTIALS_REQUIRED, type ErrorKind, fieldErrorsOf, unavailable } from "../../runtime/errors.ts";

function refusedByPostgres(code: string, fields: Partial<pg.DatabaseError> = {}): pg.DatabaseError {
  return Object.assign(new pg.DatabaseError("what Postgres said", 0, "error"), { code, ...fields });
}

const context = { requestId: "r-1", at: new Date("2026-01-02T03:04:05Z") };

describe("toHttpError", () => {
  test.each([
    ["23505", 409, "RESOURCE_CONFLICT"],
    ["23503", 409, "RESOURCE_CONFLICT"],
    ["23514", 400, "VALIDATION_ERROR"],
    ["22P02", 400, "VALIDATION_ERROR"],
    ["42501", 403, "PERMISSION_DENIED"],
    ["42P01", 404, "RESOURCE_NOT_FOUND"],
    ["42883", 404, "RESOURCE_NOT_FOUND"],
    ["25006", 405, "METHOD_NOT_ALLOWED"],
    ["57014", 500, "TIMEOUT"],
    ["53300", 503, "SERVICE_UNAVAILABLE"],
    ["57P01", 503, "SERVICE_UNAVAILABLE"],
    ["P0001", 400, "VALIDATION_ERROR"],
    ["PT418", 418, "VALIDATION_ERROR"],
    ["PT404", 404, "RESOURCE_NOT_FOUND"],
    ["LOGIN", 401, "AUTH_REQUIRED"],
    ["NOPER", 403, "PERMISSION_DENIED"],
    ["NTFND", 404, "RESOURCE_NOT_FOUND"],
    ["TAKEN", 409, "RESOURCE_CONFLICT"],
    ["WRONG", 400, "VALIDATION_ERROR"],
    ["TOMNY", 429, "RATE_LIMITED"],
    ["XX000", 500, "INTERNAL_ERROR"],
    ["42P17", 500, "INTERNAL_ERROR"],
    ["21000", 500, "INTERNAL_ERROR"],
    ["0LP01", 403, "PERMISSION_DENIED"],
    ["28000", 403, "PERMISSION_DENIED"],
    ["22023", 400, "VALIDATION_ERROR"],
    ["23P01", 400, "RESOURCE_CONFLICT"],
    ["40001", 500, "RESOURCE_CONFLICT"],
    ["40P01", 500, "RESOURCE_CONFLICT"],
    ["53400", 500, "INTERNAL_ERROR"],
    ["54001", 500, "INTERNAL_ERROR"],
    ["55P03", 500, "INTERNAL_ERROR"],
    ["08006", 503, "SERVICE_UNAVAILABLE"],
    ["P0002", 500, "INTERNAL_ERROR"],
    ["PT100", 500, "INTERNAL_ERROR"],
    ["PT999", 500, "INTERNAL_ERROR"],
    ["PTABC", 500, "INTERNAL_ERROR"],
    ["ZZZZZ", 400, "VALIDATION_ERROR"],
  ])("SQLSTATE %s becomes status %i and the code %s", (code, status, word) => {
    const error = toHttpError(refusedByPostgres(code));
    expect(error.status).toBe(status);
    expect(errorCodeOf(error)).toBe(word);
  });

  test.each([
    ["21000", "UPDATE requires a WHERE clause", 400, "VALIDATION_ERROR"],
    ["21000", "more than one row returned by a subquery used as an expression", 500, "INTERNAL_ERROR"],
    ["22023", 'role "ghost" does not exist', 401, "AUTH_REQUIRED"],
    ["22023", "cannot call json_to_record on a scalar", 400, "VALIDATION_ERROR"],
    ["42501", 'could not open file "base/16384/2601": Permission denied', 503, "SERVICE_UNAVAILABLE"],
    ["42501", 'could not open file "pg_xact/0001": Read-only file system', 503, "SERVICE_UNAVAILABLE"],
    ["42501", 'could not open file "/etc/shadow" for reading: Permission denied', 403, "PERMISSION_DENIED"],
    ["42883", "function xmlagg(text) does not exist", 406, "VALIDATION_ERROR"],
    ["42883", "function nothing() does not exist", 404, "RESOURCE_NOT_FOUND"],
  ])("SQLSTATE %s with the message %j becomes status %i and the code %s", (code, message, status, word) => {
    const error = toHttpError(refusedByPostgres(code, { message }));
    expect(error.status).toBe(status);
    expect(errorCodeOf(error)).toBe(word);
  });

  test("Postgres's message for a refused statement is kept, with detail and hint", () => {
    const error = toHttpError(refusedByPostgres("23505", { detail: "the detail", hint: "the hint" }));
    expect(toTableBody(error)).toEqual({
      code: "23505",
      message: "what Postgres said",
      details: "the detail",
      hint: "the hint",
    });
  });

  test("a missing privilege is 401 for anonymous callers and 403 for authenticated ones", () => {
    const denied = refusedByPostgres("42501");
    expect(toHttpError(denied, { anonymous: true }).status).toBe(401);
    expect(errorCodeOf(toHttpError(denied, { anonymous: true }))).toBe("AUTH_REQUIRED");
    expect(toHttpError(denied).status).toBe(403);
  });

  test.each([new TypeError("x is not a function"), "a string", null, refusedByPostgres("XX001", { detail: "page 7" })])(
    "an unexpected error has no details in the response and keeps its cause for the log: %s",
    (thrown) => {
      const error = toHttpError(thrown);
      expect(error.status).toBe(500);
      expect(error.cause).toBe(thrown);
      expect(
        JSON.stringify([toTableBody(error), toEnvelope(error, "nested", context), toGraphQLBody(error, "verbose")]),
      ).not.toMatch(/not a function|a string|what Postgres said|page 7/);
    },
  );

  test("details may be structured for programs", () => {
    const choices = [{ relationship: "a using b(c)" }];
    expect(toTableBody(new HttpError(300, "PGRST201", "which?", { details: choices })).details).toEqual(choices);
  });

  test("an unavailable database is 503 with Retry-After", () => {
    const error = toHttpError(refusedByPostgres("57P03"));
    expect(error.status).toBe(503);
    expect(error.retryAfterSeconds).toBe(1);
  });
});

describe("the invalid fields", () => {
  test("are those that the details list", () => {
    const details = [{ field: "email", message: "Send a text." }, { other: "thing" }];
    const error = new HttpError(400, "VALIDATION_ERROR", "Not acceptable.", { details });
    expect(fieldErrorsOf(error)).toEqual([{ field: "email", message: "Send a text." }]);
  });

  test("are the one that our own SQL names", () => {
    const error = new HttpError(409, "TAKEN", "It is taken.", { details: "email" });
    expect(fieldErrorsOf(error)).toEqual([{ field: "email", message: "It is taken." }]);
  });

  test("are empty if the detail is a sentence of Postgres", () => {
    const error = new HttpError(409, "23505", "duplicate key", { details: "Key (email)=(a@b) already exists." });
    expect(fieldErrorsOf(error)).toEqual([]);
  });
});

describe("the interfaces", () => {
  const error = new HttpError(409, "RESOURCE_CONFLICT", "That e-mail is taken.");
  const fieldErrors = [{ field: "email", message: "is taken" }];

  test("nested is the default envelope", () => {
    expect(toEnvelope(error, "nested", { ...context, fieldErrors })).toEqual({
      error: {
        code: "RESOURCE_CONFLICT",
        message: "That e-mail is taken.",
        details: fieldErrors,
        requestId: "r-1",
        timestamp: "2026-01-02T03:04:05.000Z",
        documentation: "/docs/errors#RESOURCE_CONFLICT",
      },
    });
  });

  test("detail, flat and spring are the other documented formats", () => {
    expect(toEnvelope(error, "detail", context)).toEqual({
      detail: { code: "RESOURCE_CONFLICT", message: "That e-mail is taken." },
    });
    expect(toEnvelope(error, "flat", { ...context, fieldErrors })).toEqual({
      error: "RESOURCE_CONFLICT",
      message: "That e-mail is taken.",
      field: "email",
    });
    const several = [...fieldErrors, { field: "name", message: "is missing" }, { field: "email", message: "is long" }];
    expect(toEnvelope(error, "spring", { ...context, fieldErrors: several })).toMatchObject({
      error: { fields: { email: "is taken is long", name: "is missing" } },
    });
    expect(toEnvelope(error, "spring", { ...context, fieldErrors })).toEqual({
      timestamp: "2026-01-02T03:04:05.000Z",
      status: 409,
      error: { code: "RESOURCE_CONFLICT", message: "That e-mail is taken.", fields: { email: "is taken" } },
    });
  });

  test("GraphQL and channels have the error code", () => {
    expect(toGraphQLBody(error, "verbose")).toEqual({
      message: "That e-mail is taken.",
      extensions: { code: "RESOURCE_CONFLICT" },
    });
    expect(toChannelReason(error)).toEqual({ reason: "RESOURCE_CONFLICT: That e-mail is taken." });
  });

  test("the table interface identifies token errors by PostgREST's codes", () => {
    expect(toTableBody(new HttpError(401, "TOKEN_EXPIRED", "expired")).code).toBe("PGRST303");
    expect(toTableBody(new HttpError(401, "INVALID_TOKEN", "unreadable")).code).toBe("PGRST301");
  });

  test("the table interface has PostgREST's words for what other interfaces explain", () => {
    const challenge = { error: "invalid_token", description: "JWT expired" } as const;
    const expired = new HttpError(401, "TOKEN_EXPIRED", "The token expired a minute ago.", { challenge });
    expect(toTableBody(expired).message).toBe("JWT expired");
    const locked = new HttpError(504, "PGRST003", '"films" is locked by another transaction; try again.');
    expect(toTableBody(locked).message).toBe("Timed out acquiring connection from connection pool.");
    expect(toGraphQLBody(locked, "verbose").message).toBe('"films" is locked by another transaction; try again.');
  });

  test("a PostgREST code is replaced by that of its status in other interfaces", () => {
    expect(errorCodeOf(new HttpError(404, "PGRST205", "no such table"))).toBe("RESOURCE_NOT_FOUND");
    expect(errorCodeOf(new HttpError(400, "PGRST100", "unreadable"))).toBe("VALIDATION_ERROR");
    expect(errorCodeOf(new HttpError(408, "TIMEOUT", "too late"))).toBe("TIMEOUT");
  });
});

describe("an error of the engine over HTTP", () => {
  test.each<[ErrorKind, number]>([
    ["ambiguous", 300],
    ["invalid", 400],
    ["forbidden", 403],
    ["notFound", 404],
    ["notAllowed", 405],
    ["notAcceptable", 406],
    ["conflict", 409],
    ["gone", 410],
    ["rateLimited", 429],
    ["internal", 500],
    ["upstreamFailed", 502],
    ["unavailable", 503],
    ["timeout", 504],
  ])("of the kind %s has the status %i and no headers", (kind, status) => {
    const options = { details: "the details", hint: "the hint", cause: "the cause" };
    const error = toHttpError(new ApiError(kind, "CODE", "What went wrong.", options));
    expect(error).toMatchObject({ ...options, kind, status, code: "CODE", message: "What went wrong.", headers: {} });
  });

  test("has Retry-After if the time is known", () => {
    const error = toHttpError(unavailable("Not now."));
    expect(error.status).toBe(503);
    expect(errorHeaders(error)).toEqual({ "Retry-After": "1" });
  });

  test("challenges a client that is not authenticated", () => {
    const options = { challenge: CREDENTIALS_REQUIRED };
    const error = toHttpError(new ApiError("unauthenticated", "INVALID_CREDENTIALS", "Wrong.", options));
    expect(error.status).toBe(401);
    expect(errorHeaders(error)).toEqual({ "WWW-Authenticate": "Bearer" });
  });

  test("names the error of a token in the challenge", () => {
    const challenge = { error: "invalid_token", description: "JWT expired" } as const;
    const error = toHttpError(new ApiError("unauthenticated", "TOKEN_EXPIRED", "Refresh it.", { challenge }));
    expect(errorHeaders(error)).toEqual({
      "WWW-Authenticate": 'Bearer error="invalid_token", error_description="JWT expired"',
    });
  });
});
