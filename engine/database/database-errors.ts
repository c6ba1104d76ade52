import pg from "pg";
import { ApiError, unavailable } from "../errors.ts";

/** Undefined column, table and schema. */
const UNDEFINED_OBJECT_CODES: ReadonlySet<string | undefined> = new Set(["42703", "42P01", "3F000"]);

export const SCHEMA_CHANGED_MESSAGE = "The database has just been changed; try again in a moment.";

const RETRY_AFTER_SECONDS = 1;
const REDUCE_RESPONSE_HINT = "Ask for fewer rows, fewer columns or fewer nested lists.";

/** Postgres refused the role or a setting, before the statement began. */
export class ContextError extends pg.DatabaseError {}

/** Whether there is no such role, or the login may not become it. */
export function isRoleRefused({ message }: ContextError): boolean {
  return /^(?:role .* does not exist|permission denied to set role .*)$/s.test(message);
}

/** What callers without credentials are told where there is no role for them. */
export const ANONYMOUS_NOT_SERVED = "Sign in first: callers without credentials are not served here.";

/** PostgREST's code and words for a database that cannot be reached. */
export function databaseUnreachable(cause: unknown): ApiError {
  return new ApiError("unavailable", "PGRST000", "Database connection error. Retrying the connection.", {
    retryAfterSeconds: RETRY_AFTER_SECONDS,
    cause,
  });
}

const ACQUIRE_TIMEOUT_CODE = "PGRST003";

export function isAcquireTimeout(error: unknown): error is ApiError {
  return error instanceof ApiError && error.code === ACQUIRE_TIMEOUT_CODE;
}

/** The database is there, but every connection was busy for too long. */
export function acquireTimeout(): ApiError {
  return new ApiError("timeout", ACQUIRE_TIMEOUT_CODE, "Timed out acquiring connection from connection pool.", {
    retryAfterSeconds: RETRY_AFTER_SECONDS,
  });
}

export function shuttingDown(): ApiError {
  return unavailable("The service is shutting down.");
}

const UNANSWERED_CODES: ReadonlySet<string> = new Set(["PGRST000", "PGRST001", "PGRST003"]);

/** Whatever was asked had no part in it: the database is away, too busy, or was lost. */
export function isUnanswered(error: unknown): boolean {
  return error instanceof ApiError && UNANSWERED_CODES.has(error.code);
}

/** Nothing was applied, so asking again is safe. */
export function connectionLost(cause: unknown): ApiError {
  return unavailable("The database connection was lost. Nothing was changed; try again.", cause);
}

/** SQLSTATE 08007 is transaction_resolution_unknown. */
export function outcomeUnknown(cause: unknown): ApiError {
  const message = "The database connection was lost, and the change may have been made. Look before you try again.";
  return new ApiError("unavailable", "08007", message, {
    hint: "With an Idempotency-Key from the beginning it is made once, however often it is tried.",
    retryAfterSeconds: RETRY_AFTER_SECONDS,
    cause,
  });
}

/** SQLSTATE query_canceled: by statement_timeout, or because somebody asked for it. */
export function isQueryCanceled(error: unknown): boolean {
  return error instanceof pg.DatabaseError && error.code === "57014";
}

/** Nothing of it is kept. */
export function responseTooLarge(limit: number, hint = REDUCE_RESPONSE_HINT): ApiError {
  return new ApiError("invalid", "ANSWER_TOO_LARGE", `The answer would be larger than ${limit} bytes.`, {
    details: "Nothing was changed.",
    hint,
  });
}

/** It had been committed when its answer came. */
export function changedButResponseTooLarge(): ApiError {
  return new ApiError("invalid", "ANSWER_TOO_LARGE", "The change was made, but its answer is too large to be told.", {
    hint: "Do not repeat it: read what you need of it.",
  });
}

export function isResponseTooLarge(error: unknown): boolean {
  return error instanceof ApiError && error.code === "ANSWER_TOO_LARGE";
}

/** Each of them may be as large as it is, but not all at once. */
export function tooManyLargeResponses(): ApiError {
  return unavailable("Too many large answers are being made at once; try again shortly.");
}

/** SQLSTATE class 25 is invalid_transaction_state. What the session runs next would run in the wrong transaction. */
export function unexpectedTransactionState(): ApiError {
  return new ApiError(
    "internal",
    "25000",
    "A statement may not begin or end a transaction; its connection was closed.",
  );
}

/** Somebody who does not read keeps a connection and the database's old rows occupied. */
export function readerStalled(): ApiError {
  return new ApiError("timeout", "57014", "The rows were not read for too long; the query was cancelled.");
}

/** SQLSTATE 25P02 is in_failed_sql_transaction. */
export function transactionFailed(): ApiError {
  return new ApiError("internal", "25P02", "The transaction had failed and was rolled back.");
}

/**
 * Whether a statement names what is there no more: it was made by a schema that is about to be replaced. Those that people
 * write, in functions, have a context; and a value that is taken for a name, in a row say, has no place in the statement.
 */
export function isSchemaOutdated(error: unknown): boolean {
  if (!(error instanceof pg.DatabaseError) || error.where || error.position === undefined) return false;
  const isFunctionGone = error.code === "42883" && error.routine === "ParseFuncOrColumn";
  return isFunctionGone || UNDEFINED_OBJECT_CODES.has(error.code);
}
