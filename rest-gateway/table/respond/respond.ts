import { type GatewayResponse, HttpError, type ResponseBody, TABLE_PREFIX } from "#http";
import {
  type CallPlan,
  cursorNotPossible,
  type LegacyTarget,
  notOneRow,
  orderNotTotal,
  type Plan,
  type ReadPlan,
  type ResponseRow,
  type RunResult,
  type WritePlan,
} from "#planner";
import type { ResponseFormat } from "#planner/intent";
import { formatCursor, isCursor } from "../parse/query-parameters.ts";
import { canonicalQueryString, type UrlParameter } from "../parse/query-string.ts";
import type { TableRequest } from "../parse/request.ts";
import { parseSqlHeaders, parseSqlStatus } from "./sql-headers.ts";

/** The preferences in PostgREST's order. */
const PREFERENCE_NAMES = {
  resolution: "resolution",
  missing: "missing",
  nested: "nested",
  removed: "removed",
  operators: "operators",
  return: "return",
  count: "count",
  tx: "tx",
  handling: "handling",
  timezone: "timezone",
  maxAffected: "max-affected",
} as const;
const PREFERENCE_ORDER = Object.keys(PREFERENCE_NAMES) as PreferenceName[];

/** The types whose responses have `charset=utf-8`: not binary types, and not the types of media type handlers. */
const TEXT_TYPES = new Set([
  "application/json",
  "application/geo+json",
  "application/openapi+json",
  "text/csv",
  "text/plain",
  "text/xml",
]);

/** Characters that would end the quoted text of a warning, or the header. */
const WARNING_ESCAPES = /["\\]/g;
const CONTROL_CHARACTERS = /\p{Cc}/gu;

const NOT_ASCII = /[^\t -~]/;

/** The limit of a cursor, since servers may reject a request with a longer one. */
const MAX_CURSOR_LENGTH = 4_096;

type ResponseHeaders = Record<string, string>;

/** The request headers that the response depends on. */
const VARY_HEADERS = "Accept, Prefer, Range";

type StatusAndHeaders = { readonly status: number; readonly headers: ResponseHeaders };
type SentResponse<B> = StatusAndHeaders & { readonly body: B | null };

/** Makes the response to a result, by the client's method and preferences. */
export function respond<B extends ResponseBody>(
  request: TableRequest,
  plan: Plan,
  result: RunResult<B>,
): GatewayResponse<B | Buffer> {
  const { status, headers, body } = respondByKind(request, plan, result);
  Object.assign(headers, pageHeaders(request.parameters, plan, result));
  if (request.profile.negotiated && headers["Content-Type"]) headers["Content-Profile"] = request.profile.schema;
  headers.Vary = VARY_HEADERS;
  const { legacyTargets } = plan;
  if (legacyTargets) headers.Warning = legacyWarning(legacyTargets);
  if (result.headers === null && result.status === null) {
    return isAscii(request.profile.schema) && !legacyTargets
      ? { status, headers, body }
      : encodeHeaders({ status, headers, body });
  }
  const sqlHeaders = parseSqlHeaders(result.headers);
  return encodeHeaders({
    status: parseSqlStatus(result.status) ?? status,
    headers: { ...headers, ...sqlHeaders },
    body,
  });
}

function respondByKind<B extends ResponseBody>(
  request: TableRequest,
  plan: Plan,
  result: RunResult<B>,
): SentResponse<B> {
  if (plan.format.kind === "plan") return respondWithExplanation(plan, result);
  switch (plan.kind) {
    case "read":
      return respondWithRows(request, plan, result);
    case "call":
      return respondWithCallResult(request, plan, result);
    case "write":
      return respondToWrite(request, plan, result);
  }
}

const READ_PREFERENCES: readonly PreferenceName[] = ["count", "tx", "handling", "timezone"];
const CALL_PREFERENCES: readonly PreferenceName[] = [...READ_PREFERENCES, "maxAffected"];

/**
 * The limit of this header: proxies accept response heads of 4 KiB, and Node's fetch of 16 KiB; a query string with a list of values can
 * be longer.
 */
const MAX_CONTENT_LOCATION = 2_048;

function respondWithRows<B extends ResponseBody>(
  request: TableRequest,
  plan: ReadPlan,
  result: RunResult<B>,
): SentResponse<B> {
  if (plan.format.kind === "object" && result.rowCount !== 1) throw notOneRow(result.rowCount!);
  const { status, range } = rangeStatus(plan.rows, result.rowCount, leastTotal(plan, result));
  const headers: ResponseHeaders = {
    "Content-Range": range,
    ...preferenceHeader(request, READ_PREFERENCES),
    ...contentTypeHeader(plan),
  };
  const query = request.canonicalQuery ?? canonicalQueryString(request.parameters);
  const location = `/${encodeURIComponent(plan.table.name)}${query && `?${query}`}`;
  if (location.length <= MAX_CONTENT_LOCATION) headers["Content-Location"] = location;
  return { status, headers, body: result.body };
}

function respondWithCallResult<B extends ResponseBody>(
  request: TableRequest,
  plan: CallPlan,
  result: RunResult<B>,
): SentResponse<B> {
  if (plan.format.kind === "object" && result.rowCount !== 1) throw notOneRow(result.rowCount!);
  const { status, range } = rangeStatus(plan.rows, result.rowCount, result.total);
  const headers: ResponseHeaders = { "Content-Range": range, ...preferenceHeader(request, CALL_PREFERENCES) };
  const { shape, set } = plan.routine.returns;
  if (shape === "void" && !set) return { status: 204, headers, body: null };
  return { status, headers: { ...headers, ...contentTypeHeader(plan) }, body: result.body };
}

function respondToWrite<B extends ResponseBody>(
  request: TableRequest,
  plan: WritePlan,
  result: RunResult<B>,
): SentResponse<B> {
  const { status, headers } = writeHead(request, plan, result);
  if (!returnsRows(request)) return { status, headers, body: null };
  return { status, headers: { ...headers, ...contentTypeHeader(plan) }, body: result.body };
}

function writeHead(request: TableRequest, plan: WritePlan, result: RunResult<unknown>): StatusAndHeaders {
  const { change } = plan;
  switch (change.kind) {
    case "insert":
      return request.method === "PUT"
        ? putHead(request, result)
        : insertHead(request, plan, change.conflict !== null, result);
    case "nested insert":
      if (request.method === "POST") return insertHead(request, plan, false, result);
      return updateHead(request, result);
    case "update":
      return updateHead(request, result);
    case "delete":
      return changeHead(request, contentRange(1, 0, writtenTotal(request, result)), DELETE_PREFERENCES);
  }
}

function updateHead(request: TableRequest, result: RunResult<unknown>): StatusAndHeaders {
  const range = contentRange(0, lastRowNumber(0, result.rowCount), writtenTotal(request, result));
  return changeHead(request, range, UPDATE_PREFERENCES);
}

const PUT_PREFERENCES: readonly PreferenceName[] = ["return", ...READ_PREFERENCES];
const INSERT_PREFERENCES: readonly PreferenceName[] = [
  "resolution",
  "missing",
  "nested",
  "return",
  ...READ_PREFERENCES,
];
const UPDATE_PREFERENCES: readonly PreferenceName[] = [
  "missing",
  "operators",
  "nested",
  "removed",
  "return",
  ...CALL_PREFERENCES,
];
const DELETE_PREFERENCES: readonly PreferenceName[] = ["return", ...CALL_PREFERENCES];

function putHead(request: TableRequest, result: RunResult<unknown>): StatusAndHeaders {
  const status = (result.inserted ?? 0) > 0 ? 201 : 200;
  return { status: returnsRows(request) ? status : 204, headers: preferenceHeader(request, PUT_PREFERENCES) };
}

function insertHead(
  request: TableRequest,
  { table, location }: WritePlan,
  mayConflict: boolean,
  result: RunResult<unknown>,
): StatusAndHeaders {
  const relevant = mayConflict ? INSERT_PREFERENCES : INSERT_PREFERENCES.filter((name) => name !== "resolution");
  const range = contentRange(1, 0, writtenTotal(request, result));
  const headers: ResponseHeaders = { "Content-Range": range, ...preferenceHeader(request, relevant) };
  if (location && result.location) headers.Location = rowLocation(table.name, location, result.location);
  return { status: isCreated(request, result) ? 201 : 200, headers };
}

/** Makes the response to an UPDATE or DELETE. */
function changeHead(request: TableRequest, range: string, relevant: readonly PreferenceName[]): StatusAndHeaders {
  return {
    status: returnsRows(request) ? 200 : 204,
    headers: { "Content-Range": range, ...preferenceHeader(request, relevant) },
  };
}

/** Returns true if rows were inserted. Without a key nothing can be merged, so all rows were. */
function isCreated({ preferences }: TableRequest, { inserted, rowCount: page }: RunResult<unknown>): boolean {
  return preferences.resolution !== "merge-duplicates" || (inserted ?? page ?? 0) > 0;
}

/** Returns the total of a write. A planned count applies to reads only. */
function writtenTotal({ preferences: { count } }: TableRequest, { rowCount: page }: RunResult<unknown>): number | null {
  return count === "exact" || count === "estimated" ? page : null;
}

function returnsRows({ preferences }: TableRequest): boolean {
  return preferences.return === "representation";
}

function respondWithExplanation<B extends ResponseBody>(plan: Plan, result: RunResult<B>): SentResponse<B> {
  return { status: 200, headers: contentTypeHeader(plan), body: result.body };
}

/** Returns the path of a row, `/films?id=eq.7`. */
function rowLocation(table: string, columns: readonly string[], values: readonly (string | null)[]): string {
  const key = columns.map((name, index) => {
    const value = values[index] ?? null;
    return `${encodeURIComponent(name)}=${value === null ? "is.null" : `eq.${encodeURIComponent(value)}`}`;
  });
  return `/${encodeURIComponent(table)}?${key.join("&")}`;
}

function preferenceHeader(request: TableRequest, relevant: readonly PreferenceName[]): ResponseHeaders {
  const header = preferenceApplied(request, relevant);
  return header === null ? {} : { "Preference-Applied": header };
}

function contentTypeHeader({ format }: Plan): ResponseHeaders {
  return { "Content-Type": contentType(format) };
}

type PageResult = Pick<ResponseRow<unknown>, "position" | "total">;

/** Returns links to the next and the first page, and Content-Range on the first page, if the row numbers are known. */
function pageHeaders(parameters: readonly UrlParameter[], plan: Plan, { position, total }: PageResult) {
  if (plan.kind === "write" || plan.keyset === null || position === undefined) return {};
  const { order, isFirst } = plan.keyset;
  const linkTo = (relation: string, cursor: string) =>
    `<${resourcePath(plan)}?${withCursor(parameters, cursor)}>; rel="${relation}"`;
  const next = position === null ? [] : [linkTo("next", nextCursor(order, position))];
  const links = isFirst ? next : [...next, linkTo("first", "")];
  return {
    ...(links.length > 0 && { Link: links.join(", ") }),
    ...(!isFirst && { "Content-Range": contentRange(1, 0, total) }),
  };
}

function nextCursor(order: string, values: readonly (string | null)[]): string {
  if (values.length === 0) throw orderNotTotal("The last row of the page and the next one are in the same place.");
  const cursor = formatCursor({ order, values });
  if (cursor.length > MAX_CURSOR_LENGTH)
    throw cursorNotPossible("The values by which the rows are ordered are too long to be part of an address.");
  return cursor;
}

function resourcePath(plan: Exclude<Plan, { kind: "write" }>): string {
  return plan.kind === "call"
    ? `${TABLE_PREFIX}/rpc/${encodeURIComponent(plan.routine.name)}`
    : `${TABLE_PREFIX}/${encodeURIComponent(plan.table.name)}`;
}

function withCursor(parameters: readonly UrlParameter[], cursor: string): string {
  const others = parameters.filter(([name, value]) => name !== "cursor" || !isCursor(value));
  return [...others, ["cursor", cursor] as const]
    .map(([name, value]) => `${encodeURIComponent(name)}=${encodeURIComponent(value)}`)
    .join("&");
}

/** Prints `0-9/57`, `*\/57` for no rows, `0-9/*` without a count, `0-*\/*` for a stream of unknown length. */
export function contentRange(first: number, last: number | null, total: number | null): string {
  const rows = last === null ? `${first}-*` : total !== 0 && first <= last ? `${first}-${last}` : "*";
  return `${rows}/${total ?? "*"}`;
}

/** Returns the total; above the bound of a count, the number of rows that certainly exist. */
function leastTotal({ total: counted, rows, needsEstimate }: ReadPlan, { total, rowCount }: RunResult<unknown>) {
  if (needsEstimate || total === null || counted.kind !== "counted" || total !== counted.max) return total;
  return Math.max(total, rows.offset + (rowCount ?? 0));
}

type ReturnedRange = { readonly offset: number; readonly limit: number | null };

/** Returns the status and Content-Range of a page; `rows` is null for a stream. Throws if the page begins after the last row. */
export function rangeStatus(
  { offset, limit }: ReturnedRange,
  rows: number | null,
  total: number | null,
): { status: 200 | 206; range: string } {
  if (total !== null && offset > total) {
    throw new HttpError(416, "PGRST103", "Requested range not satisfiable", {
      details: `An offset of ${offset} was requested, but there are only ${total} rows.`,
      headers: { "Content-Range": `*/${total}` },
    });
  }
  const returned = rows ?? Math.min((total ?? 0) - offset, limit ?? Number.POSITIVE_INFINITY);
  const status = total !== null && returned < total ? 206 : 200;
  return { status, range: contentRange(offset, lastRowNumber(offset, rows), total) };
}

export function lastRowNumber(first: number, rows: number | null): number | null {
  return rows === null ? null : first + rows - 1;
}

type PreferenceName = keyof typeof PREFERENCE_NAMES;

/** Returns the value of Preference-Applied: the relevant preferences that were applied; null if none were. */
function preferenceApplied({ method, preferences }: TableRequest, relevant: readonly PreferenceName[]): string | null {
  const isApplied = (name: PreferenceName) => {
    if (name === "maxAffected") return preferences.handling === "strict";
    // A POST inserts nested rows; the other values are for a PATCH.
    return name !== "nested" || (preferences.nested === "insert") === (method === "POST");
  };
  const applied = PREFERENCE_ORDER.filter(
    (name) => preferences[name] !== null && relevant.includes(name) && isApplied(name),
  );
  return applied.length > 0 ? applied.map((name) => formatPreference(name, preferences[name]!)).join(", ") : null;
}

function formatPreference(name: PreferenceName, value: string | number | true): string {
  return value === true ? PREFERENCE_NAMES[name] : `${PREFERENCE_NAMES[name]}=${value}`;
}

function contentType({ kind, type }: ResponseFormat): string {
  return kind !== "media" || TEXT_TYPES.has(type) ? `${type}; charset=utf-8` : type;
}

/** Returns PostgREST's warning for a relation with an alias that is referred to by its name (RFC 7234, 5.5). */
function legacyWarning(targets: readonly LegacyTarget[]): string {
  const changes = targets.map(({ name, alias }) => `\`${name}\` to \`${alias}\``).join(", ");
  const text =
    "Embedded resource was referenced by relation name even though it has an alias. This is deprecated and will stop " +
    `working in a future release. Update ${changes} in query string filters, orders or limits.`;
  return `299 PostgREST "${text.replace(CONTROL_CHARACTERS, " ").replace(WARNING_ESCAPES, "\\$&")}"`;
}

function isAscii(text: string): boolean {
  return !NOT_ASCII.test(text);
}

/**
 * Encodes headers as UTF-8, as PostgREST does: Node writes one byte per character, so each byte becomes a character. Node would write
 * these headers as UTF-8 again together with a string body, so the body becomes a Buffer.
 */
export function encodeHeaders<B extends ResponseBody>(response: GatewayResponse<B>): GatewayResponse<B | Buffer> {
  const { headers, body } = response;
  if (Object.values(headers).flat().every(isAscii)) return response;
  const encoded = Object.entries(headers).map(([name, value]) => [
    name,
    typeof value === "string" ? toHeaderBytes(value) : value.map(toHeaderBytes),
  ]);
  return {
    ...response,
    headers: Object.fromEntries(encoded),
    body: typeof body === "string" ? Buffer.from(body) : body,
  };
}

function toHeaderBytes(text: string): string {
  return Buffer.from(text).toString("latin1");
}
