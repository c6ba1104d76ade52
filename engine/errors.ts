import pg from "pg";

/** A sentence, or what a program can read of it. */
export type ApiErrorDetails = string | readonly object[] | Readonly<Record<string, unknown>>;

/** What a rejected caller should do: send credentials, or another token, because this one is invalid (RFC 6750 §3). */
export type AuthenticationChallenge =
  | { readonly error: null }
  | { readonly error: "invalid_token"; readonly description: string };

export const CREDENTIALS_REQUIRED: AuthenticationChallenge = { error: null };

type ApiErrorOptions = {
  readonly details?: ApiErrorDetails | null;
  readonly hint?: string | null;
  readonly challenge?: AuthenticationChallenge | null;
  readonly retryAfterSeconds?: number | null;
  /** Headers of the response, for errors of an HTTP interface. */
  readonly headers?: Readonly<Record<string, string>>;
  readonly reason?: string | null;
  readonly tableMessage?: string;
  readonly beside?: Readonly<Record<string, unknown>>;
  readonly cause?: unknown;
};

/** The one error that may reach a client: Postgres's own four fields and an HTTP status. */
export class ApiError extends Error {
  readonly status: number;
  readonly code: string;
  readonly details: ApiErrorDetails | null;
  readonly hint: string | null;
  readonly challenge: AuthenticationChallenge | null;
  readonly retryAfterSeconds: number | null;
  readonly headers: Readonly<Record<string, string>>;
  /** What stands behind the status, where SQL said it. */
  readonly reason: string | null;
  /** What the table interface says instead, where clients compare PostgREST's words; null: the same. */
  readonly tableMessage: string | null;
  /** What the conventional interface's body has besides the error. */
  readonly beside: Readonly<Record<string, unknown>>;

  constructor(status: number, code: string, message: string, extra: ApiErrorOptions = {}) {
    const { details, hint, challenge, retryAfterSeconds, headers, reason, tableMessage, beside, cause } = extra;
    super(message, cause === undefined ? undefined : { cause });
    this.name = "ApiError";
    this.status = status;
    this.code = code;
    this.details = details ?? null;
    this.hint = hint ?? null;
    this.challenge = challenge ?? null;
    this.retryAfterSeconds = retryAfterSeconds ?? null;
    this.headers = headers ?? {};
    this.reason = reason ?? null;
    this.tableMessage = tableMessage ?? null;
    this.beside = beside ?? {};
  }

  /** The same error with more headers. */
  withHeaders(headers: Readonly<Record<string, string>>): ApiError {
    const { status, code, message, details, hint, challenge, retryAfterSeconds } = this;
    const { reason, tableMessage, beside, cause } = this;
    return new ApiError(status, code, message, {
      details,
      hint,
      challenge,
      retryAfterSeconds,
      reason,
      ...(tableMessage !== null && { tableMessage }),
      beside,
      cause,
      headers: { ...this.headers, ...headers },
    });
  }
}

/** Codes of the conventional interface and of GraphQL's `extensions.code`. */
export type ErrorCode =
  | "VALIDATION_ERROR"
  | "AUTH_REQUIRED"
  | "AUTH_EXPIRED"
  | "PERMISSION_DENIED"
  | "RESOURCE_NOT_FOUND"
  | "RESOURCE_CONFLICT"
  | "RATE_LIMITED"
  | "INTERNAL_ERROR"
  | "METHOD_NOT_ALLOWED"
  | "SERVICE_UNAVAILABLE"
  | "TIMEOUT";

type SqlstateMeaning = readonly [status: number, word: ErrorCode];

/**
 * SQLSTATE -> HTTP status and word. A whole class is named by its first two characters.
 * Statuses are PostgREST's; the five-letter codes are raised by our own SQL (see db/README.md).
 */
const SQLSTATES: Readonly<Record<string, SqlstateMeaning>> = {
  LOGIN: [401, "AUTH_REQUIRED"],
  NOPER: [403, "PERMISSION_DENIED"],
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

/** Codes that stand for several things, which the message tells apart. */
const MEANINGS_BY_MESSAGE: Readonly<Record<string, readonly [message: RegExp, meaning: SqlstateMeaning]>> = {
  // The extension pg_safeupdate, and we, refuse to change all rows.
  "21000": [/requires a WHERE clause$/, [400, "VALIDATION_ERROR"]],
  // The token's role was dropped, or never was.
  "22023": [/^role .* does not exist$/s, [401, "AUTH_REQUIRED"]],
  "42883": [/^function xmlagg\(/, [406, "VALIDATION_ERROR"]],
};

/** What an unknown SQLSTATE means: the statement was refused because of what was asked. */
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

/** The HTTP status for what Postgres said, also where its words are masked. */
export function statusOf(sqlstate: string, message: string): number {
  return meaningOf(sqlstate, message)[0];
}

function meaningOf(sqlstate: string, message: string): SqlstateMeaning {
  if (sqlstate.startsWith("PT")) return meaningOfStatus(sqlstate.slice(2));
  const [pattern, meaning] = MEANINGS_BY_MESSAGE[sqlstate] ?? [];
  if (pattern?.test(message)) return meaning!;
  return SQLSTATES[sqlstate] ?? SQLSTATES[sqlstate.slice(0, 2)] ?? DEFAULT_MEANING;
}

/** `raise sqlstate 'PT404'`; one that is no status of an answer is a mistake of the function. */
function meaningOfStatus(digits: string): SqlstateMeaning {
  const status = /^[2-5]\d\d$/.test(digits) ? Number(digits) : 500;
  return [status, errorCodeOfStatus(status)];
}

function errorCodeOfStatus(status: number): ErrorCode {
  return ERROR_CODE_OF_STATUS[status] ?? (status >= 500 ? "INTERNAL_ERROR" : "VALIDATION_ERROR");
}

/** Whatever was thrown, as the error a client may see. Anything unforeseen becomes a bland 500 that keeps its cause for the log. */
export function toApiError(error: unknown, { anonymous = false }: { anonymous?: boolean } = {}): ApiError {
  if (error instanceof ApiError) return error;
  if (error instanceof pg.DatabaseError && error.code) {
    const [status, word] = meaningOf(error.code, error.message);
    if (word === "INTERNAL_ERROR") return internalError(error, error.code);
    if (word === "SERVICE_UNAVAILABLE") return unavailable("The database cannot answer now; try again shortly.", error);
    const { code, message, detail, hint } = error;
    // An anonymous caller who lacks a privilege should sign in; one who is known should ask for it.
    const mustSignIn = code === "42501" && anonymous;
    const extra = { details: detail ?? null, hint: hint ?? null, cause: error };
    return new ApiError(mustSignIn ? 401 : status, code, message, extra);
  }
  return internalError(error, "XX000");
}

function internalError(cause: unknown, code: string): ApiError {
  return new ApiError(500, code, "Internal error", {
    hint: "This is a fault of the service; its log holds the request id and the cause.",
    cause,
  });
}

export function unavailable(message: string, cause?: unknown): ApiError {
  return new ApiError(503, "PGRST001", message, { retryAfterSeconds: 1, cause });
}

/** The word for any error, whether Postgres, PostgREST's vocabulary or we named its code. */
export function errorCodeOf(error: ApiError): string {
  if (/^(TIMEOUT|[A-Z]{2,}(_[A-Z]+)+)$/.test(error.code)) return error.code;
  if (error.code === "42501" && error.status === 401) return "AUTH_REQUIRED";
  return /^PGRST/.test(error.code) ? errorCodeOfStatus(error.status) : meaningOf(error.code, error.message)[1];
}

/** A bearer token's faults have names of their own here and numbers in PostgREST. */
const TABLE_CODES: Readonly<Record<string, string>> = {
  TOKEN_EXPIRED: "PGRST303",
  VERIFICATION_FAILED: "PGRST303",
  INVALID_TOKEN: "PGRST301",
  AUTH_REQUIRED: "PGRST302",
  METHOD_NOT_ALLOWED: "PGRST117",
  RESOURCE_NOT_FOUND: "PGRST125",
};

export type ErrorVerbosity = "verbose" | "minimal";

/** The table interface's body. */
export function toTableBody(error: ApiError) {
  const { code, message, tableMessage, details, hint } = error;
  return { code: TABLE_CODES[code] ?? code, details, hint, message: tableMessage ?? message };
}

/** The error as sent to clients where details are switched off. */
export function toMinimalTableBody(error: ApiError) {
  const { code, message } = toTableBody(error);
  return { code, message };
}

/** GraphQL's entry in `errors`, less its path and locations. */
export function toGraphQLBody(error: ApiError) {
  return { message: error.message, extensions: { code: errorCodeOf(error) } };
}

/** A realtime channel's refusal. */
export function toChannelReason(error: ApiError) {
  return { reason: `${errorCodeOf(error)}: ${error.message}` };
}

export type ErrorBodyShape = "nested" | "detail" | "flat" | "spring";
export type FieldError = { readonly field: string; readonly message: string };
/** What is told of a refusal beside the error. */
export type EnvelopeContext = {
  readonly requestId: string;
  readonly at: Date;
  readonly faults?: readonly FieldError[];
};

/** Which fields are at fault. Our own SQL names the one field in the detail (see db/README.md). */
export function fieldErrorsOf({ code, details, message }: ApiError): readonly FieldError[] {
  if (Array.isArray(details)) return details.filter(isFieldError);
  const isNamed = (code === "WRONG" || code === "TAKEN") && typeof details === "string" && details !== "";
  return isNamed ? [{ field: details, message }] : [];
}

function isFieldError(detail: object): detail is FieldError {
  return "field" in detail && "message" in detail;
}

/** The conventional interface's body, in the variant the deployment chose. */
export function toEnvelope(error: ApiError, shape: ErrorBodyShape, particulars: EnvelopeContext): object {
  return { ...toVariant(error, shape, particulars), ...error.beside };
}

/** All of a field, one after the other. */
function messagesByField(faults: readonly FieldError[]): Readonly<Record<string, string>> {
  const byField = Object.groupBy(faults, ({ field }) => field);
  const entries = Object.entries(byField).map(([field, ofField]) => [
    field,
    ofField!.map(({ message }) => message).join(" "),
  ]);
  return Object.fromEntries(entries);
}

function toVariant(error: ApiError, shape: ErrorBodyShape, { requestId, at, faults = [] }: EnvelopeContext): object {
  const code = errorCodeOf(error);
  const { message, status } = error;
  const timestamp = at.toISOString();
  switch (shape) {
    case "detail":
      return { detail: { code, message } };
    case "flat":
      return { error: code, message, field: faults[0]?.field ?? null };
    case "spring":
      return {
        timestamp,
        status,
        error: { code, message, fields: messagesByField(faults) },
      };
    case "nested":
      return {
        error: { code, message, details: faults, requestId, timestamp, documentation: `/docs/errors#${code}` },
      };
  }
}
