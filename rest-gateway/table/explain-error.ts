import pg from "pg";
import { type Catalog, findMissingGrants, type TablePrivilege } from "#catalog";
import { HttpError, statusOf, toHttpError, withBearerChallenge } from "#http";
import { nestedPathOf } from "#planner";
import type { Intent } from "#planner/intent";
import { quotedName } from "#postgres/client";
import { ContextError, clientDetailOf, isContextRefused, isRoleRefused } from "#postgres/database";
import { CREDENTIALS_REQUIRED } from "#runtime";
import { canonicalHeaderName, isValidHeader } from "./respond/sql-headers.ts";

const COLUMN_HINT = /^Perhaps you meant to reference the column "[^"]+\.[^"]+"(?: or the column "[^"]+\.[^"]+")?\.$/;
const HINTED_COLUMN = /"(?<alias>[^"]+)\.(?<column>[^".]+)"/g;
/** The suffix of the alias of an embedded table that also occurs outside. */
const ALIAS_SUFFIX = /_\d+$/;

type ErrorAudience = {
  readonly anonymous: boolean;
  /** Removes a hint that names columns which the caller may not see. */
  readonly columnHint: (hint: string | null) => string | null;
  /** Returns a hint at the missing privilege, for callers who may know it. */
  readonly grantHint?: (message: string) => string | null;
};

const INSUFFICIENT_PRIVILEGE = "42501";
const INVALID_TEXT = "22P02";
const UUID_FOR_NUMBER = /^invalid input syntax for type bigint: "[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}"$/i;
/** An account has a number and a uuid, and supabase-js shows the uuid as `user.id`. */
const USER_NUMBER_HINT =
  'If this is the id of a user, send the number that auth.uid() returns: the claim "sub", which supabase.auth.getClaims() has.';

/** The routine of Postgres's own errors about missing columns; errors raised by functions are left unchanged. */
const MISSING_COLUMN_ROUTINE = "errorMissingColumn";

/** Converts a thrown value to the error that PostgREST would return. */
export function toTableError(thrown: unknown, audience: ErrorAudience): HttpError {
  const { anonymous } = audience;
  // The token names a role that Postgres does not know, or that the login may not become.
  if (thrown instanceof ContextError && isContextRefused(thrown)) {
    if (anonymous && isRoleRefused(thrown)) return anonymousDisabled(thrown);
    return new HttpError(401, thrown.code ?? "22023", thrown.message, {
      challenge: CREDENTIALS_REQUIRED,
      cause: thrown,
    });
  }
  if (thrown instanceof pg.DatabaseError && thrown.code === "PGRST") return raisedError(thrown);
  return withBearerChallenge(toPostgresError(thrown, toHttpError(thrown, { anonymous }), audience));
}

/** The anonymous role does not exist, so callers without credentials are not served. */
function anonymousDisabled(cause: ContextError): HttpError {
  return new HttpError(401, "PGRST302", "Anonymous access is disabled", { challenge: CREDENTIALS_REQUIRED, cause });
}

/**
 * Returns Postgres's own messages, since clients of this interface work on tables and functions. Internal errors of the
 * server stay masked.
 */
function toPostgresError(thrown: unknown, error: HttpError, audience: ErrorAudience): HttpError {
  if (!(thrown instanceof pg.DatabaseError) || !thrown.code || /^(XX|58)/.test(thrown.code)) return error;
  const { code, message, hint: suggested = null } = thrown;
  const detail = clientDetailOf(thrown);
  const hint =
    thrown.routine === MISSING_COLUMN_ROUTINE
      ? audience.columnHint(suggested)
      : (suggested ?? ownHint({ code, message }, audience));
  const status = error.status === 401 ? 401 : statusOf(code, message);
  const reason = code === `PT${status}` ? message : null;
  const { retryAfterSeconds } = error;
  const path = nestedPathOf(thrown);
  const details = path === null ? detail : { path, detail };
  return new HttpError(status, code, message, { details, hint, reason, retryAfterSeconds, cause: thrown });
}

/** Returns our hint for an error for which Postgres has none. */
function ownHint({ code, message }: Pick<HttpError, "code" | "message">, { grantHint }: ErrorAudience): string | null {
  if (code === INSUFFICIENT_PRIVILEGE) return grantHint?.(message) ?? null;
  return code === INVALID_TEXT && UUID_FOR_NUMBER.test(message) ? USER_NUMBER_HINT : null;
}

type RaisedMessage = {
  readonly code: string;
  readonly message: string;
  readonly details?: string | null;
  readonly hint?: string | null;
};
type RaisedDetail = {
  readonly status: number;
  readonly status_text?: string | null;
  readonly headers: Readonly<Record<string, string>>;
};

/** Parses `raise sqlstate 'PGRST' using message = '{"code":…,"message":…}', detail = '{"status":…,"headers":{…}}'`. */
function raisedError(thrown: pg.DatabaseError): HttpError {
  const raised = parseObject<RaisedMessage>(thrown.message, isRaisedMessage);
  if (!raised) return invalidRaise("MESSAGE", thrown.message);
  const detail = parseObject<RaisedDetail>(thrown.detail ?? "", isRaisedDetail);
  if (!detail) return invalidRaise("DETAIL", thrown.detail);
  const { code, message, details = null, hint = null } = raised;
  const { status, status_text: reason = null } = detail;
  const headers = Object.fromEntries(
    Object.entries(detail.headers).map(([name, value]) => [canonicalHeaderName(name), value]),
  );
  return new HttpError(status, code, message, { details, hint, reason, headers, cause: thrown });
}

function parseObject<T>(text: string, is: (value: Record<string, unknown>) => boolean): T | null {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null && is(value as Record<string, unknown>) ? (value as T) : null;
  } catch {
    return null;
  }
}

function isRaisedMessage({ code, message, details, hint }: Record<string, unknown>): boolean {
  return typeof code === "string" && typeof message === "string" && isOptionalText(details) && isOptionalText(hint);
}

function isRaisedDetail({ status, status_text, headers }: Record<string, unknown>): boolean {
  if (!isStatus(status) || !isOptionalText(status_text) || typeof headers !== "object" || headers === null)
    return false;
  return (
    !Array.isArray(headers) && Object.entries(headers).every((header) => isValidHeader(header) && isLatin1(header[1]))
  );
}

/** Returns true for Latin-1, the only characters that Node accepts in headers of a response with a string body. */
function isLatin1(text: string): boolean {
  return !/[\u0100-\u{10ffff}]/u.test(text);
}

/** Returns true for a valid status. After a status below 200, clients would wait for another response. */
function isStatus(status: unknown): boolean {
  return typeof status === "number" && Number.isInteger(status) && status >= 200 && status <= 999;
}

function isOptionalText(value: unknown): boolean {
  return value === undefined || value === null || typeof value === "string";
}

const RAISE_KEYS = {
  MESSAGE: "'code', 'message' and optional keys: 'details', 'hint'",
  DETAIL: "'status', 'headers' and optional key: 'status_text'",
} as const;

function invalidRaise(field: keyof typeof RAISE_KEYS, found: string | undefined): HttpError {
  return new HttpError(500, "PGRST121", "Could not parse JSON in the \"RAISE SQLSTATE 'PGRST'\" error", {
    details:
      found === undefined
        ? `${field} is missing in the RAISE statement`
        : `Invalid JSON value for ${field}: '${found}'`,
    hint: `${field} must be a JSON object with obligatory keys: ${RAISE_KEYS[field]}.`,
  });
}

/**
 * Returns Postgres's suggestion for a column that does not exist; null if the role may not see the suggested column. Postgres considers
 * all
 * columns. Messages in other languages than English are dropped, because the column cannot be recognized in them.
 */
export function visibleColumnHint(hint: string | null, catalog: Catalog, role: string): string | null {
  if (hint === null || !COLUMN_HINT.test(hint)) return null;
  const named = [...hint.matchAll(HINTED_COLUMN)].map(({ groups }) => groups as { alias: string; column: string });
  return named.every(({ alias, column }) => isVisibleColumn(alias, column, catalog, role)) ? hint : null;
}

const VERBS: Readonly<Record<Intent["kind"], readonly TablePrivilege[]>> = {
  read: ["select"],
  insert: ["insert", "select"],
  update: ["update", "select"],
  delete: ["delete", "select"],
  call: ["select"],
};

type RefusedRequest = { readonly role: string; readonly isAnonymous: boolean; readonly intent: Intent | null };

/** Returns the SQL that grants the missing privileges to the role, and what else may help; null if the catalogue finds none. */
export function missingGrantHint(
  message: string,
  { role, isAnonymous, intent }: RefusedRequest,
  catalog: Catalog,
): string | null {
  const merges = intent?.kind === "insert" && intent.upsert?.resolution === "merge";
  const verbs: readonly TablePrivilege[] = merges ? ["insert", "update", "select"] : VERBS[intent?.kind ?? "read"];
  const written = intent && {
    schema: intent.target.schema,
    table: intent.target.name,
    columns: writtenColumns(intent),
  };
  const missing = findMissingGrants(message, { role, verbs, ...(written && { written }) }, catalog);
  if (missing.length === 0) return null;
  const refused = missing.flatMap(({ refusedColumns }) => refusedColumns);
  // A row that is merged is found by a column that it has to contain.
  const mayLeaveOut = !merges && refused.length > 0;
  const ways = [
    ...(isAnonymous ? ["sign in"] : []),
    ...(mayLeaveOut ? [`leave out ${refused.map((column) => quotedName(column)).join(", ")}`] : []),
    `grant what the role lacks, as the owner: ${missing.map(({ sql }) => sql).join(" ")}`,
  ].join(", or ");
  return `${ways[0]!.toUpperCase()}${ways.slice(1)}`;
}

/** The columns of the target that a request sets. An update by key also sends the key, so its columns are not known. */
function writtenColumns(intent: Intent): readonly string[] {
  if (intent.kind === "insert" && !intent.nested?.update)
    return intent.nested ? [...new Set(intent.nested.rows.flatMap(Object.keys))] : intent.payload.columns;
  return intent.kind === "update" && !intent.nested && !intent.key ? intent.payload.columns : [];
}

function isVisibleColumn(alias: string, column: string, catalog: Catalog, role: string): boolean {
  const names = [alias, alias.replace(ALIAS_SUFFIX, "")];
  const tables = [...catalog.schemas.values()]
    .filter(({ exposed }) => exposed)
    .flatMap(({ tables }) => names.flatMap((name) => tables.get(name) ?? []))
    .filter(({ columns }) => columns.has(column));
  return tables.length > 0 && tables.every((table) => catalog.hasPrivilege(role, "select", table, column));
}
