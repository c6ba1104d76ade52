import pg from "pg";
import { ApiError, unavailable } from "../errors.ts";

/** SQLSTATE undefined_column, undefined_table and invalid_schema_name. */
const UNDEFINED_OBJECT_CODES: ReadonlySet<string | undefined> = new Set(["42703", "42P01", "3F000"]);

export const SCHEMA_CHANGED_MESSAGE = "The database has just been changed; try again in a moment.";

const RETRY_AFTER_SECONDS = 1;
const REDUCE_RESPONSE_HINT = "Ask for fewer rows, fewer columns or fewer nested lists.";

/** Postgres rejected the role or a setting, before the statement ran. */
export class ContextError extends pg.DatabaseError {}

/** Postgres rejected the statement that was to run before the request's own. */
export class PrecedingStatementError extends pg.DatabaseError {}

/** Whether the role does not exist, or the login is not a member of it. */
export function isRoleRefused({ message }: ContextError): boolean {
  return /^(?:role .* does not exist|permission denied to set role .*)$/s.test(message);
}

/** The message for anonymous callers when no anonymous role is configured. */
export const ANONYMOUS_NOT_SERVED = "Sign in first: callers without credentials are not served here.";

/** PostgREST's code and message for a database that cannot be reached. */
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

/** All connections were busy for longer than the acquire timeout. */
export function acquireTimeout(): ApiError {
  return new ApiError("timeout", ACQUIRE_TIMEOUT_CODE, "Timed out acquiring connection from connection pool.", {
    retryAfterSeconds: RETRY_AFTER_SECONDS,
  });
}

export function shuttingDown(): ApiError {
  return unavailable("The service is shutting down.");
}

const UNANSWERED_CODES: ReadonlySet<string> = new Set(["PGRST000", "PGRST001", "PGRST003"]);

/**
 * Whether the error is about the database's availability and not about the statement: unreachable, overloaded, or the
 * connection was lost.
 */
export function isUnanswered(error: unknown): boolean {
  return error instanceof ApiError && UNANSWERED_CODES.has(error.code);
}

/** Nothing was changed, so a retry is safe. */
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

/** SQLSTATE query_canceled: by statement_timeout or by a cancel request. */
export function isQueryCanceled(error: unknown): boolean {
  return error instanceof pg.DatabaseError && error.code === "57014";
}

/** For reads and rolled-back statements: nothing was committed. */
export function responseTooLarge(limit: number, hint = REDUCE_RESPONSE_HINT): ApiError {
  return new ApiError("invalid", "ANSWER_TOO_LARGE", `The answer would be larger than ${limit} bytes.`, {
    details: "Nothing was changed.",
    hint,
  });
}

/** The change was committed before its response was received. */
export function changedButResponseTooLarge(): ApiError {
  return new ApiError("invalid", "ANSWER_TOO_LARGE", "The change was made, but its answer is too large to be told.", {
    hint: "Do not repeat it: read what you need of it.",
  });
}

export function isResponseTooLarge(error: unknown): boolean {
  return error instanceof ApiError && error.code === "ANSWER_TOO_LARGE";
}

/** Each response is within its limit, but their sum exceeds the total limit. */
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

/** A client that does not read occupies a connection and prevents vacuum from removing old rows. */
export function readerStalled(): ApiError {
  return new ApiError("timeout", "57014", "The rows were not read for too long; the query was cancelled.");
}

/** SQLSTATE 25P02 is in_failed_sql_transaction. */
export function transactionFailed(): ApiError {
  return new ApiError("internal", "25P02", "The transaction had failed and was rolled back.");
}

/**
 * Whether a statement refers to an object that no longer exists: it was built from an outdated catalogue. Errors inside
 * functions have a `where`, and a value that is cast to a name has no position, so neither counts.
 */
export function isSchemaOutdated(error: unknown): boolean {
  if (!(error instanceof pg.DatabaseError) || error.where || error.position === undefined) return false;
  const isFunctionGone = error.code === "42883" && error.routine === "ParseFuncOrColumn";
  return isFunctionGone || UNDEFINED_OBJECT_CODES.has(error.code);
}
