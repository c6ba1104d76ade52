import pg from "pg";
import { ContextError } from "../../engine/database/faults.ts";
import { ApiError, statusOf, toApiError } from "../../engine/errors.ts";

/** Whatever was thrown, as PostgREST would tell it. */
export function toTableError(thrown: unknown, { anonymous }: { readonly anonymous: boolean }): ApiError {
  // The token names a role that Postgres does not know, or that the login may not become.
  if (thrown instanceof ContextError) {
    return new ApiError(401, thrown.code ?? "22023", thrown.message, {
      headers: { "WWW-Authenticate": "Bearer" },
      cause: thrown,
    });
  }
  if (thrown instanceof pg.DatabaseError && thrown.code === "PGRST") return raisedError(thrown);
  const error = inPostgresWords(thrown, toApiError(thrown, { anonymous }));
  if (error.status !== 401 || error.headers["WWW-Authenticate"]) return error;
  const { status, code, message, details, hint, cause, headers } = error;
  return new ApiError(status, code, message, {
    details,
    hint,
    cause,
    headers: { ...headers, "WWW-Authenticate": "Bearer" },
  });
}

/**
 * A client of this interface works on tables and functions, and is told what Postgres says of them; faults of the server
 * itself stay masked.
 */
function inPostgresWords(thrown: unknown, error: ApiError): ApiError {
  if (!(thrown instanceof pg.DatabaseError) || !thrown.code || /^(XX|58)/.test(thrown.code)) return error;
  const { code, message, detail = null, hint = null } = thrown;
  const status = error.status === 401 ? 401 : statusOf(code);
  return new ApiError(status, code, message, { details: detail, hint, headers: error.headers, cause: thrown });
}

type Raised = { readonly code: string; readonly message: string; readonly details?: string; readonly hint?: string };
type Manner = { readonly status: number; readonly headers: Readonly<Record<string, string>> };

/** `raise sqlstate 'PGRST' using message = '{"code":…,"message":…}', detail = '{"status":…,"headers":{…}}'` */
function raisedError(thrown: pg.DatabaseError): ApiError {
  const raised = readObject<Raised>(thrown.message, isRaised);
  if (!raised) return unreadable("MESSAGE", thrown.message, "'code', 'message' and optional keys: 'details', 'hint'");
  const manner = readObject<Manner>(thrown.detail ?? "", isManner);
  if (!manner) return unreadable("DETAIL", thrown.detail ?? "", "'status', 'headers' and optional key: 'status_text'");
  const { code, message, details = null, hint = null } = raised;
  return new ApiError(manner.status, code, message, { details, hint, headers: manner.headers, cause: thrown });
}

function readObject<T>(text: string, is: (value: Record<string, unknown>) => boolean): T | null {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null && is(value as Record<string, unknown>) ? (value as T) : null;
  } catch {
    return null;
  }
}

function isRaised({ code, message }: Record<string, unknown>): boolean {
  return typeof code === "string" && typeof message === "string";
}

function isManner({ status, headers }: Record<string, unknown>): boolean {
  if (!Number.isInteger(status) || typeof headers !== "object" || headers === null) return false;
  return Object.values(headers).every((value) => typeof value === "string");
}

function unreadable(field: "MESSAGE" | "DETAIL", found: string, wanted: string): ApiError {
  return new ApiError(500, "PGRST121", "Could not parse JSON in the \"RAISE SQLSTATE 'PGRST'\" error", {
    details: `Invalid JSON value for ${field}: '${found}'`,
    hint: `${field} must be a JSON object with obligatory keys: ${wanted}.`,
  });
}
