import pg from "pg";
import { ContextError, isRoleRefused } from "../../engine/database/faults.ts";
import { ApiError, statusOf, toApiError } from "../../engine/errors.ts";
import { spelled } from "./send/spelled.ts";
import { isHeader } from "./send/sql-response.ts";

type Audience = {
  readonly anonymous: boolean;
  /** What the caller may know of a hint that names columns. */
  readonly columnHint: (hint: string | null) => string | null;
};

/** Where Postgres itself finds that a column does not exist; what functions raise is for their authors to say. */
const MISSING_COLUMN = "errorMissingColumn";

/** Whatever was thrown, as PostgREST would tell it. */
export function toTableError(thrown: unknown, audience: Audience): ApiError {
  const { anonymous } = audience;
  // The token names a role that Postgres does not know, or that the login may not become.
  if (thrown instanceof ContextError) {
    if (anonymous && isRoleRefused(thrown)) return anonymousIsDisabled(thrown);
    return new ApiError(401, thrown.code ?? "22023", thrown.message, {
      headers: { "WWW-Authenticate": "Bearer" },
      cause: thrown,
    });
  }
  if (thrown instanceof pg.DatabaseError && thrown.code === "PGRST") return raisedError(thrown);
  const error = inPostgresWords(thrown, toApiError(thrown, { anonymous }), audience);
  if (error.status !== 401 || error.headers["WWW-Authenticate"]) return error;
  return error.withHeaders({ "WWW-Authenticate": "Bearer" });
}

/** Where the role of those without credentials does not exist, they are not served. */
function anonymousIsDisabled(cause: ContextError): ApiError {
  const headers = { "WWW-Authenticate": "Bearer" };
  return new ApiError(401, "PGRST302", "Anonymous access is disabled", { headers, cause });
}

/**
 * A client of this interface works on tables and functions, and is told what Postgres says of them; faults of the server
 * itself stay masked.
 */
function inPostgresWords(thrown: unknown, error: ApiError, { columnHint }: Audience): ApiError {
  if (!(thrown instanceof pg.DatabaseError) || !thrown.code || /^(XX|58)/.test(thrown.code)) return error;
  const { code, message, detail = null, hint: suggested = null } = thrown;
  const hint = thrown.routine === MISSING_COLUMN ? columnHint(suggested) : suggested;
  const status = error.status === 401 ? 401 : statusOf(code, message);
  const reason = code === `PT${status}` ? message : null;
  return new ApiError(status, code, message, { details: detail, hint, reason, headers: error.headers, cause: thrown });
}

type Raised = {
  readonly code: string;
  readonly message: string;
  readonly details?: string | null;
  readonly hint?: string | null;
};
type Manner = {
  readonly status: number;
  readonly status_text?: string | null;
  readonly headers: Readonly<Record<string, string>>;
};

/** `raise sqlstate 'PGRST' using message = '{"code":…,"message":…}', detail = '{"status":…,"headers":{…}}'` */
function raisedError(thrown: pg.DatabaseError): ApiError {
  const raised = readObject<Raised>(thrown.message, isRaised);
  if (!raised) return unreadable("MESSAGE", thrown.message);
  const manner = readObject<Manner>(thrown.detail ?? "", isManner);
  if (!manner) return unreadable("DETAIL", thrown.detail);
  const { code, message, details = null, hint = null } = raised;
  const { status, status_text: reason = null } = manner;
  const headers = Object.fromEntries(Object.entries(manner.headers).map(([name, value]) => [spelled(name), value]));
  return new ApiError(status, code, message, { details, hint, reason, headers, cause: thrown });
}

function readObject<T>(text: string, is: (value: Record<string, unknown>) => boolean): T | null {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null && is(value as Record<string, unknown>) ? (value as T) : null;
  } catch {
    return null;
  }
}

function isRaised({ code, message, details, hint }: Record<string, unknown>): boolean {
  return typeof code === "string" && typeof message === "string" && isTextIfAny(details) && isTextIfAny(hint);
}

function isManner({ status, status_text, headers }: Record<string, unknown>): boolean {
  if (!isStatus(status) || !isTextIfAny(status_text) || typeof headers !== "object" || headers === null) return false;
  return !Array.isArray(headers) && Object.entries(headers).every((header) => isHeader(header) && isLatin(header[1]));
}

/** Node takes nothing else for a header of an answer whose body is text. */
function isLatin(text: string): boolean {
  return !/[\u0100-\u{10ffff}]/u.test(text);
}

/** Those below 200 announce an answer that never comes. */
function isStatus(status: unknown): boolean {
  return typeof status === "number" && Number.isInteger(status) && status >= 200 && status <= 999;
}

function isTextIfAny(value: unknown): boolean {
  return value === undefined || value === null || typeof value === "string";
}

const KEYS = {
  MESSAGE: "'code', 'message' and optional keys: 'details', 'hint'",
  DETAIL: "'status', 'headers' and optional key: 'status_text'",
} as const;

function unreadable(field: keyof typeof KEYS, found: string | undefined): ApiError {
  return new ApiError(500, "PGRST121", "Could not parse JSON in the \"RAISE SQLSTATE 'PGRST'\" error", {
    details:
      found === undefined
        ? `${field} is missing in the RAISE statement`
        : `Invalid JSON value for ${field}: '${found}'`,
    hint: `${field} must be a JSON object with obligatory keys: ${KEYS[field]}.`,
  });
}
