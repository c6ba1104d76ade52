import pg from "pg";
import { clientDetailOf } from "#postgres/database";
import type { RateLimitStatus } from "#postgres/rate-limits";
import { ApiError, type ApiErrorOptions, CREDENTIALS_REQUIRED, type ErrorKind, unavailable } from "#runtime";
import { errorCodeOfStatus, meaningOf } from "./sqlstates.ts";

type HttpErrorOptions = ApiErrorOptions & {
  readonly headers?: Readonly<Record<string, string>>;
  /** The reason phrase of the status line, if SQL chose one. */
  readonly reason?: string | null;
  /** Further members of the conventional interface's body, beside `error`. */
  readonly beside?: Readonly<Record<string, unknown>>;
};

/** The mapping of error kinds to HTTP statuses. */
const STATUS_OF_KIND: Readonly<Record<ErrorKind, number>> = {
  ambiguous: 300,
  invalid: 400,
  unauthenticated: 401,
  forbidden: 403,
  notFound: 404,
  notAllowed: 405,
  notAcceptable: 406,
  conflict: 409,
  gone: 410,
  rateLimited: 429,
  internal: 500,
  upstreamFailed: 502,
  unavailable: 503,
  timeout: 504,
};

const KIND_OF_STATUS = new Map(Object.entries(STATUS_OF_KIND).map(([kind, status]) => [status, kind as ErrorKind]));

/** An error with the status and the headers of its HTTP response. */
export class HttpError extends ApiError {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly reason: string | null;
  readonly beside: Readonly<Record<string, unknown>>;

  constructor(status: number, code: string, message: string, options: HttpErrorOptions = {}) {
    super(kindOf(status), code, message, options);
    this.name = "HttpError";
    this.status = status;
    this.headers = options.headers ?? {};
    this.reason = options.reason ?? null;
    this.beside = options.beside ?? {};
  }

  /** The same error with further headers. */
  withHeaders(headers: Readonly<Record<string, string>>): HttpError {
    return new HttpError(this.status, this.code, this.message, {
      ...this,
      headers: { ...this.headers, ...headers },
      cause: this.cause,
    });
  }
}

/** The same error with further members in its body. */
export function withMembers(error: HttpError, beside: HttpError["beside"]): HttpError {
  const members = { ...error.beside, ...beside };
  return new HttpError(error.status, error.code, error.message, { ...error, beside: members, cause: error.cause });
}

function kindOf(status: number): ErrorKind {
  return KIND_OF_STATUS.get(status) ?? (status >= 500 ? "internal" : "invalid");
}

/**
 * Converts anything that was thrown to the error that a client may see. Unexpected errors become a 500 without details;
 * their cause is only logged.
 */
export function toHttpError(thrown: unknown, { anonymous = false }: { anonymous?: boolean } = {}): HttpError {
  if (thrown instanceof HttpError) return thrown;
  if (thrown instanceof ApiError) return fromApiError(thrown);
  if (thrown instanceof pg.DatabaseError && thrown.code) return fromDatabaseError(thrown, thrown.code, anonymous);
  return internalError(thrown, "XX000");
}

function fromApiError(error: ApiError): HttpError {
  const { kind, code, message, details, hint, challenge, retryAfterSeconds, cause } = error;
  const options = { details, hint, challenge, retryAfterSeconds, cause };
  return new HttpError(STATUS_OF_KIND[kind], code, message, options);
}

function fromDatabaseError(error: pg.DatabaseError, code: string, anonymous: boolean): HttpError {
  const { message, hint = null } = error;
  const detail = clientDetailOf(error);
  const [status, errorCode] = meaningOf(code, message);
  if (errorCode === "INTERNAL_ERROR") return internalError(error, code);
  if (errorCode === "SERVICE_UNAVAILABLE") {
    return fromApiError(unavailable("The database cannot answer now; try again shortly.", error));
  }
  // An anonymous caller who lacks a privilege should sign in; a signed-in one should ask for it.
  const mustSignIn = code === "42501" && anonymous;
  return new HttpError(mustSignIn ? 401 : status, code, message, { details: detail, hint, cause: error });
}

function internalError(cause: unknown, code: string): HttpError {
  return new HttpError(500, code, "Internal error", {
    hint: "This is a fault of the service; its log holds the request id and the cause.",
    cause,
  });
}

/** Returns the code in the conventional interface, in GraphQL and on channels, wherever the error comes from. */
export function errorCodeOf({ code, status, message }: HttpError): string {
  if (/^(TIMEOUT|[A-Z]{2,}(_[A-Z]+)+)$/.test(code)) return code;
  if (code === "42501" && status === 401) return "AUTH_REQUIRED";
  return /^PGRST/.test(code) ? errorCodeOfStatus(status) : meaningOf(code, message)[1];
}

export function notFound(): HttpError {
  return new HttpError(404, "RESOURCE_NOT_FOUND", "Not found.", {
    hint: "Paths are lower case and have no trailing slash.",
  });
}

/** `allow` has the format of the header: `GET, HEAD, OPTIONS`. */
export function methodNotAllowed(method: string, allow: string): HttpError {
  return new HttpError(405, "METHOD_NOT_ALLOWED", `The method ${method} is not allowed here.`, {
    hint: `Allowed methods: ${allow}.`,
    headers: { Allow: allow },
  });
}

/** Returns the response headers of an error. */
export function errorHeaders({ challenge, retryAfterSeconds, headers }: HttpError): Readonly<Record<string, string>> {
  return {
    ...(challenge && { "WWW-Authenticate": bearerChallenge(challenge) }),
    ...(retryAfterSeconds !== null && { "Retry-After": String(retryAfterSeconds) }),
    ...headers,
  };
}

/** Adds the challenge that a 401 response must have (RFC 9110 §15.5.2), unless the error has one. */
export function withBearerChallenge(error: HttpError): HttpError {
  if (error.status !== 401 || errorHeaders(error)["WWW-Authenticate"] !== undefined) return error;
  return error.withHeaders({ "WWW-Authenticate": bearerChallenge(CREDENTIALS_REQUIRED) });
}

function bearerChallenge(challenge: NonNullable<HttpError["challenge"]>): string {
  if (challenge.error === null) return "Bearer";
  return `Bearer error="${challenge.error}", error_description="${challenge.description}"`;
}

/** `what` names the counted items, such as "requests". */
export function tooManyRequests({ limit, endsAt }: Pick<RateLimitStatus, "limit" | "endsAt">, what: string): HttpError {
  const seconds = Math.max(1, Math.ceil((endsAt - Date.now()) / 1000));
  return new HttpError(429, "RATE_LIMITED", `More than ${limit} ${what} in one minute.`, {
    hint: `Try again in ${seconds} seconds.`,
    headers: { "Retry-After": String(seconds) },
  });
}
