import { makeCallerSettings, makeSearchPathSetting, roleSettings, serializeClaims } from "#accounts/identity";
import type { Config } from "#config";
import { type BodyLimit, type HttpError, jsonResponse } from "#http";
import { requestInfoOf } from "#http/request-info";
import type { SqlMessage, SqlResponse, SqlResult } from "#operations/admin-types";
import { shorterLimit } from "#postgres/database";
import type { StatementContext } from "#postgres/statement";
import { readJsonObject } from "#rest-gateway/sign-in";
import { isJsonObject } from "#runtime/json";
import { runScript, type ScriptMessage, type ScriptOutcome, type ScriptResult } from "../script/run-script.ts";
import { toLoggedSql } from "../script/without-secrets.ts";
import { invalidRequest, permissionDenied } from "./admin-errors.ts";
import { type AdminRequest, type AdminRoutes, type AdminServices, limitRunning } from "./admin-request.ts";

const SQL_BODY: BodyLimit = { bytes: 1024 * 1024, isAnonymous: false };
const DEFAULT_ROWS = 1_000;
const MAX_ROWS = 50_000;
/** The maximum size of all rows of a response. */
const MAX_RESULT_BYTES = 8 * 1024 * 1024;
/** The maximum number of concurrent requests; each has its own connection. */
const MAX_RUNNING = 4;
/** The maximum length of the text in the audit log. */
const LOGGED_CHARACTERS = 1_000;

type SqlRequest = {
  readonly sql: string;
  /** The assumed role; null runs the statements as the owner. */
  readonly as: { readonly role: string; readonly claims: Readonly<Record<string, unknown>> } | null;
  readonly limit: number;
  readonly readOnly: boolean;
  readonly explain: { readonly analyze: boolean } | null;
};

/** `POST /sql`: runs statements that an administrator has written. */
export function sqlRoutes({ config, postgres, catalog, log }: AdminServices): AdminRoutes {
  const contextOf = makeContextReader(config, catalog);
  const limited = limitRunning(MAX_RUNNING, "SQL requests");

  const run = async ({ request, logEvent }: AdminRequest, query: SqlRequest): Promise<ScriptOutcome> => {
    const { sql, as, limit, readOnly, explain } = query;
    const subject = { as: as?.role ?? "owner", sql: toLoggedSql(sql, LOGGED_CHARACTERS) };
    await logEvent("studio.sql_started", { ...subject, read_only: readOnly, explain: explain !== null });
    const before = performance.now();
    const milliseconds = () => Math.round(performance.now() - before);
    const logEnd = (details: Readonly<Record<string, unknown>>) =>
      logEvent("studio.sql_ended", { as: subject.as, duration_ms: milliseconds(), ...details }).catch((err) =>
        log.error({ request: request.id, err }, "the end of an SQL request could not be recorded"),
      );
    try {
      const outcome = await runScript({
        text: sql,
        url: as ? postgres.requestUrl : postgres.directUrl,
        context: as && contextOf(request, as),
        readOnly,
        explain,
        commits: explain === null,
        maxRows: limit,
        maxBytes: Math.min(MAX_RESULT_BYTES, config.maxAnswerBytes),
        ...limitsOf(config, as?.role),
        signal: request.signal,
      });
      await logEnd({ outcome: outcome.transaction, sqlstate: outcome.error?.sqlstate });
      return outcome;
    } catch (error) {
      await logEnd({ outcome: request.signal.aborted ? "cancelled" : "unknown" });
      throw error;
    }
  };

  return {
    "POST /sql": async (administration) => {
      if (!config.studioSql) throw sqlIsOff();
      const query = await readSqlRequest(administration.request);
      return jsonResponse(200, toJson(await limited(() => run(administration, query)), query.sql));
    },
  };
}

/** Returns the limits in milliseconds. A script may set others. */
function limitsOf(config: Config, role: string | undefined) {
  const seconds =
    role === config.anonRole
      ? shorterLimit(config.statementTimeout, config.anonStatementTimeout)
      : config.statementTimeout;
  const { lockTimeout, acquireTimeout } = config;
  return {
    statementTimeout: seconds * 1000,
    lockTimeout: lockTimeout * 1000,
    connectTimeout: acquireTimeout * 1000,
  };
}

/** Makes the context of this caller's requests to the table interface. Omits the headers, because they have the administrator's token. */
function makeContextReader(config: Config, catalog: AdminServices["catalog"]) {
  const callerSettings = makeCallerSettings(config);
  const searchPath = makeSearchPathSetting(config.extraSearchPath)(config.schemas[0]!);
  return (
    { id, method, path }: AdminRequest["request"],
    { role, claims }: NonNullable<SqlRequest["as"]>,
  ): StatementContext => {
    const requestInfo = requestInfoOf("table", { id, method, path, headers: {} });
    const claimsText = serializeClaims({ ...claims, role });
    const { settings } = callerSettings({ role, claimsText }, requestInfo);
    return { role, settings: [searchPath, ...roleSettings(catalog().roles.get(role)), ...settings] };
  };
}

async function readSqlRequest(request: AdminRequest["request"]): Promise<SqlRequest> {
  const body = await readJsonObject(request, SQL_BODY);
  const { sql, as = "owner", limit = DEFAULT_ROWS, read_only: readOnly = false, explain = false } = body;
  const faults = [
    ...(isText(sql) && sql.trim() !== "" ? [] : [{ field: "sql", message: "Send one or several statements." }]),
    ...(as === "owner" || isRoleAndClaims(as)
      ? []
      : [{ field: "as", message: 'Send "owner", or an object with the fields role and claims.' }]),
    ...(isLimit(limit) ? [] : [{ field: "limit", message: `Send a whole number from 1 to ${MAX_ROWS}.` }]),
    ...(typeof readOnly === "boolean" ? [] : [{ field: "read_only", message: "Send true or false." }]),
    ...(typeof explain === "boolean" || isExplainOptions(explain)
      ? []
      : [{ field: "explain", message: "Send true, false, or an object with the field analyze." }]),
  ];
  if (faults.length > 0) {
    const names = faults.map(({ field }) => field).join(", ");
    throw invalidRequest(`Invalid fields: ${names}.`, faults);
  }
  return {
    sql: sql as string,
    as: isRoleAndClaims(as) ? { role: as.role, claims: as.claims ?? {} } : null,
    limit: limit as number,
    readOnly: readOnly as boolean,
    explain: explain === false ? null : { analyze: isExplainOptions(explain) && explain.analyze === true },
  };
}

/** True if Postgres can store the text: no NUL characters and no lone surrogates. */
function isText(value: unknown): value is string {
  return typeof value === "string" && !value.includes("\0") && value.isWellFormed();
}

type RoleAndClaims = { readonly role: string; readonly claims?: Readonly<Record<string, unknown>> };

function isRoleAndClaims(value: unknown): value is RoleAndClaims {
  if (!isJsonObject(value)) return false;
  const { role, claims = {} } = value;
  return isText(role) && role !== "" && isJsonObject(claims);
}

function isLimit(value: unknown): boolean {
  return Number.isInteger(value) && (value as number) >= 1 && (value as number) <= MAX_ROWS;
}

function isExplainOptions(value: unknown): value is { readonly analyze?: boolean } {
  return isJsonObject(value) && (value.analyze === undefined || typeof value.analyze === "boolean");
}

function toJson({ results, notices, droppedNotices, error, transaction }: ScriptOutcome, sql: string): SqlResponse {
  return {
    transaction,
    results: results.map(resultJson),
    notices: notices.map((notice) => messageJson(notice, sql)),
    dropped_notices: droppedNotices,
    error: error && messageJson(error, sql),
  };
}

function resultJson({ statement, columns, rows, tag, cut, isPlan, milliseconds }: ScriptResult): SqlResult {
  return {
    start: statement.start,
    end: statement.start + statement.sql.length,
    command: tag,
    row_count: rowCountOf(tag),
    columns,
    rows: isPlan ? [] : rows,
    cut,
    plan: isPlan ? JSON.parse(rows[0]?.[0] ?? "null") : null,
    duration_ms: Number(milliseconds.toFixed(3)),
  };
}

/** Returns the number at the end of `INSERT 0 1`. */
function rowCountOf(tag: string | null): number | null {
  const count = /\d+$/.exec(tag ?? "")?.[0];
  return count === undefined ? null : Number(count);
}

function messageJson({ offset, ...message }: ScriptMessage, sql: string): SqlMessage {
  const before = offset === null ? null : sql.slice(0, offset).split("\n");
  return { ...message, offset, line: before?.length ?? null, column: before ? before.at(-1)!.length + 1 : null };
}

function sqlIsOff(): HttpError {
  return permissionDenied("SQL is turned off.", "Start the service with STUDIO_SQL=true.");
}
