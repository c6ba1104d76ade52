import pg from "pg";
import { ApiError } from "../errors.ts";

const SOON = { "Retry-After": "1" };

/** Postgres refused the role or a setting, before the statement began. */
export class ContextError extends pg.DatabaseError {}

/** PostgREST's code and words for a database that cannot be reached. */
export function databaseAway(cause: unknown): ApiError {
  return new ApiError(503, "PGRST000", "Database connection error. Retrying the connection.", { headers: SOON, cause });
}

/** The database is there, but every connection was busy for too long. */
export function waitedTooLong(): ApiError {
  return new ApiError(504, "PGRST003", "Timed out acquiring connection from connection pool.", { headers: SOON });
}

export function shuttingDown(): ApiError {
  return new ApiError(503, "PGRST001", "The service is shutting down.", { headers: SOON });
}

/** Nothing was applied, so asking again is safe. */
export function connectionLost(cause: unknown): ApiError {
  return new ApiError(503, "PGRST001", "The database connection was lost. Nothing was changed; try again.", {
    headers: SOON,
    cause,
  });
}

/** SQLSTATE 08007 is transaction_resolution_unknown. */
export function outcomeUnknown(cause: unknown): ApiError {
  return new ApiError(503, "08007", "The database connection was lost before the outcome was known.", {
    hint: "The change may or may not have been applied. Look before you try again.",
    headers: SOON,
    cause,
  });
}

/** SQLSTATE class 25 is invalid_transaction_state. What the session runs next would run in the wrong transaction. */
export function transactionAstray(): ApiError {
  return new ApiError(500, "25000", "A statement may not begin or end a transaction; its connection was closed.");
}

/** Somebody who does not read keeps a connection and the database's old rows occupied. */
export function readerStalled(): ApiError {
  return new ApiError(504, "57014", "The rows were not read for too long; the query was cancelled.");
}

/** SQLSTATE 25P02 is in_failed_sql_transaction. */
export function transactionFailed(): ApiError {
  return new ApiError(500, "25P02", "The transaction had failed and was rolled back.");
}
