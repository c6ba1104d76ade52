/** Codes of the conventional interface and of GraphQL's `extensions.code`. */
type ErrorCode =
  | "VALIDATION_ERROR"
  | "AUTH_REQUIRED"
  | "AUTH_EXPIRED"
  | "PERMISSION_DENIED"
  | "SIGN_UP_CLOSED"
  | "RESOURCE_NOT_FOUND"
  | "RESOURCE_CONFLICT"
  | "RATE_LIMITED"
  | "INTERNAL_ERROR"
  | "METHOD_NOT_ALLOWED"
  | "SERVICE_UNAVAILABLE"
  | "TIMEOUT";

type SqlstateMeaning = readonly [status: number, code: ErrorCode];

/**
 * The HTTP status and error code by SQLSTATE. A whole class is named by its first two characters. Statuses are PostgREST's;
 * the five-letter codes are raised by our own SQL (see db/README.md).
 */
const SQLSTATES: Readonly<Record<string, SqlstateMeaning>> = {
  LOGIN: [401, "AUTH_REQUIRED"],
  NOPER: [403, "PERMISSION_DENIED"],
  NSIGN: [403, "SIGN_UP_CLOSED"],
  NTFND: [404, "RESOURCE_NOT_FOUND"],
  TAKEN: [409, "RESOURCE_CONFLICT"],
  WRONG: [400, "VALIDATION_ERROR"],
  TOMNY: [429, "RATE_LIMITED"],
  "08": [503, "SERVICE_UNAVAILABLE"],
  "09": [500, "INTERNAL_ERROR"],
  "0L": [403, "PERMISSION_DENIED"],
  "0P": [403, "PERMISSION_DENIED"],
  "21": [500, "INTERNAL_ERROR"],
  "22": [400, "VALIDATION_ERROR"],
  "23": [400, "VALIDATION_ERROR"],
  "23503": [409, "RESOURCE_CONFLICT"],
  "23505": [409, "RESOURCE_CONFLICT"],
  "23P01": [400, "RESOURCE_CONFLICT"],
  "25": [500, "INTERNAL_ERROR"],
  "25006": [405, "METHOD_NOT_ALLOWED"],
  "28": [403, "PERMISSION_DENIED"],
  "2D": [500, "INTERNAL_ERROR"],
  "38": [500, "INTERNAL_ERROR"],
  "39": [500, "INTERNAL_ERROR"],
  "3B": [500, "INTERNAL_ERROR"],
  "40": [500, "INTERNAL_ERROR"],
  "40001": [500, "RESOURCE_CONFLICT"],
  "40P01": [500, "RESOURCE_CONFLICT"],
  "42501": [403, "PERMISSION_DENIED"],
  "42883": [404, "RESOURCE_NOT_FOUND"],
  "42P01": [404, "RESOURCE_NOT_FOUND"],
  "42P17": [500, "INTERNAL_ERROR"],
  "42": [400, "VALIDATION_ERROR"],
  "53": [503, "SERVICE_UNAVAILABLE"],
  "53400": [500, "INTERNAL_ERROR"],
  "54": [500, "INTERNAL_ERROR"],
  "55": [500, "INTERNAL_ERROR"],
  "57": [500, "INTERNAL_ERROR"],
  "57014": [500, "TIMEOUT"],
  "57P01": [503, "SERVICE_UNAVAILABLE"],
  "57P02": [503, "SERVICE_UNAVAILABLE"],
  "57P03": [503, "SERVICE_UNAVAILABLE"],
  "58": [500, "INTERNAL_ERROR"],
  F0: [500, "INTERNAL_ERROR"],
  HV: [500, "INTERNAL_ERROR"],
  P0: [500, "INTERNAL_ERROR"],
  P0001: [400, "VALIDATION_ERROR"],
  XX: [500, "INTERNAL_ERROR"],
};

/** The meanings of SQLSTATEs that have several, distinguished by the message. */
const MEANINGS_BY_MESSAGE: Readonly<Record<string, readonly [message: RegExp, meaning: SqlstateMeaning]>> = {
  // Raised by the extension pg_safeupdate and by this service for a change of all rows.
  "21000": [/requires a WHERE clause$/, [400, "VALIDATION_ERROR"]],
  // The token's role was dropped, or never existed.
  "22023": [/^role .* does not exist$/s, [401, "AUTH_REQUIRED"]],
  // The error concerns a file of the database, not a privilege: the disk is read-only, or the data folder belongs to another user.
  "42501": [
    /^could not .* "(base|global|pg_\w+)\/[^"]*".*: (Permission denied|Read-only file system|Operation not permitted)$/,
    [503, "SERVICE_UNAVAILABLE"],
  ],
  "42883": [/^function xmlagg\(/, [406, "VALIDATION_ERROR"]],
  // The number of the text search configuration is unknown.
  XX000: [/^cache lookup failed for text search configuration \d+$/, [400, "VALIDATION_ERROR"]],
};

/** The meaning of an unknown SQLSTATE: the request is at fault. */
const DEFAULT_MEANING: SqlstateMeaning = [400, "VALIDATION_ERROR"];

const ERROR_CODE_OF_STATUS: Readonly<Record<number, ErrorCode>> = {
  401: "AUTH_REQUIRED",
  403: "PERMISSION_DENIED",
  404: "RESOURCE_NOT_FOUND",
  405: "METHOD_NOT_ALLOWED",
  409: "RESOURCE_CONFLICT",
  410: "RESOURCE_NOT_FOUND",
  429: "RATE_LIMITED",
  503: "SERVICE_UNAVAILABLE",
  504: "TIMEOUT",
};

/** Returns the HTTP status of a Postgres error, even if its message is masked. */
export function statusOf(sqlstate: string, message: string): number {
  return meaningOf(sqlstate, message)[0];
}

export function meaningOf(sqlstate: string, message: string): SqlstateMeaning {
  if (sqlstate.startsWith("PT")) return meaningOfStatus(sqlstate.slice(2));
  const [pattern, meaning] = MEANINGS_BY_MESSAGE[sqlstate] ?? [];
  if (pattern?.test(message)) return meaning!;
  return SQLSTATES[sqlstate] ?? SQLSTATES[sqlstate.slice(0, 2)] ?? DEFAULT_MEANING;
}

/** `raise sqlstate 'PT404'` lets SQL choose the status, as in PostgREST. An invalid one is an error in the function. */
function meaningOfStatus(digits: string): SqlstateMeaning {
  const status = /^[2-5]\d\d$/.test(digits) ? Number(digits) : 500;
  return [status, errorCodeOfStatus(status)];
}

export function errorCodeOfStatus(status: number): ErrorCode {
  return ERROR_CODE_OF_STATUS[status] ?? (status >= 500 ? "INTERNAL_ERROR" : "VALIDATION_ERROR");
}
