import pg from "pg";
import { HttpError } from "#http";
import { type ApiErrorDetails, isExplained } from "#runtime";

export function invalidRequest(message: string, details: ApiErrorDetails | null = null): HttpError {
  return new HttpError(400, "VALIDATION_ERROR", message, { details });
}

export function permissionDenied(message: string, hint: string | null = null): HttpError {
  return new HttpError(403, "PERMISSION_DENIED", message, { hint });
}

export function resourceNotFound(message: string): HttpError {
  return new HttpError(404, "RESOURCE_NOT_FOUND", message);
}

export function stateConflict(message: string, cause?: unknown): HttpError {
  return new HttpError(409, "STATE_CONFLICT", message, { cause });
}

/** SQLSTATEs of insufficient privilege, refused logins, and a missing database. */
const MAY_NOT_COPY = /^(42501|28...|3D000)$/;
const COPY_HINT =
  "Allow the owner to create databases (alter role … createdb), or set SHADOW_DATABASE_URL and ROOT_DATABASE_URL.";

/** Turns an error that commands would print into a state conflict: the database, its migrations or another command forbid the work. */
export function toStateConflict(error: unknown): unknown {
  const isRefused = error instanceof pg.DatabaseError && MAY_NOT_COPY.test(error.code ?? "");
  if (!isRefused && !(isExplained(error) && !("code" in error))) return error;
  const message = isRefused ? `${error.message}. ${COPY_HINT}` : error.message;
  return stateConflict(message, error);
}

export function rejectAsConflict(error: unknown): never {
  throw toStateConflict(error);
}
