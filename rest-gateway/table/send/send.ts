import type { Body, GatewayResponse } from "../../http.ts";
import type { CallPlan, Plan, ReadPlan, WritePlan } from "../../statement/plan/plan.ts";
import { notSingular } from "../../statement/plan/refusals.ts";
import type { Told } from "../../statement/run-long.ts";
import { canonicalQueryString } from "../parse/query-string.ts";
import type { TableRequest } from "../parse/request.ts";
import { contentRange, lastOf, pageStatus } from "./content-range.ts";
import { contentTypeOf } from "./content-type.ts";
import { inBytes, isAscii } from "./in-bytes.ts";
import { legacyWarning } from "./legacy-warning.ts";
import { pageHeaders } from "./page-headers.ts";
import { type PreferenceName, preferenceApplied } from "./preference-applied.ts";
import { readSqlHeaders, readSqlStatus } from "./sql-response.ts";

type Headers = Record<string, string>;

/** What an answer depends on, of what a client may say in headers. */
const VARY = "Accept, Prefer, Range";

type Head = { readonly status: number; readonly headers: Headers };
type Sent<B> = Head & { readonly body: B | null };

/** What Postgres told, as the client asked to be answered. */
export function sendAnswer<B extends Body>(
  request: TableRequest,
  plan: Plan,
  told: Told<B>,
): GatewayResponse<B | Buffer> {
  const { status, headers, body } = sendKind(request, plan, told);
  Object.assign(headers, pageHeaders(request.parameters, plan, told));
  if (request.profile.negotiated && headers["Content-Type"]) headers["Content-Profile"] = request.profile.schema;
  headers.Vary = VARY;
  const { legacyTargets } = plan;
  if (legacyTargets) headers.Warning = legacyWarning(legacyTargets);
  if (told.headers === null && told.status === null) {
    return isAscii(request.profile.schema) && !legacyTargets
      ? { status, headers, body }
      : inBytes({ status, headers, body });
  }
  const said = readSqlHeaders(told.headers);
  return inBytes({ status: readSqlStatus(told.status) ?? status, headers: { ...headers, ...said }, body });
}

function sendKind<B extends Body>(request: TableRequest, plan: Plan, told: Told<B>): Sent<B> {
  if (plan.format.kind === "plan") return sendExplanation(plan, told);
  switch (plan.kind) {
    case "read":
      return sendRows(request, plan, told);
    case "call":
      return sendResult(request, plan, told);
    case "write":
      return sendWritten(request, plan, told);
  }
}

const OF_READS: readonly PreferenceName[] = ["count", "tx", "handling", "timezone"];
const OF_CALLS: readonly PreferenceName[] = [...OF_READS, "maxAffected"];

/** Proxies take heads of 4 KiB and Node's fetch of 16, and a list of values makes an address as long as that. */
const LONGEST_LOCATION = 2_048;

function sendRows<B extends Body>(request: TableRequest, plan: ReadPlan, told: Told<B>): Sent<B> {
  if (plan.format.kind === "object" && told.page !== 1) throw notSingular(told.page!);
  const { status, range } = pageStatus(plan.rows, told.page, told.total);
  const headers: Headers = { "Content-Range": range, ...applied(request, OF_READS), ...typeOf(plan) };
  const query = request.canonicalQuery ?? canonicalQueryString(request.parameters);
  const location = `/${encodeURIComponent(plan.table.name)}${query && `?${query}`}`;
  if (location.length <= LONGEST_LOCATION) headers["Content-Location"] = location;
  return { status, headers, body: told.body };
}

function sendResult<B extends Body>(request: TableRequest, plan: CallPlan, told: Told<B>): Sent<B> {
  if (plan.format.kind === "object" && told.page !== 1) throw notSingular(told.page!);
  const { status, range } = pageStatus(plan.rows, told.page, told.total);
  const headers: Headers = { "Content-Range": range, ...applied(request, OF_CALLS) };
  const { shape, set } = plan.routine.returns;
  if (shape === "void" && !set) return { status: 204, headers, body: null };
  return { status, headers: { ...headers, ...typeOf(plan) }, body: told.body };
}

function sendWritten<B extends Body>(request: TableRequest, plan: WritePlan, told: Told<B>): Sent<B> {
  const { status, headers } = headOfWritten(request, plan, told);
  if (!showsRows(request)) return { status, headers, body: null };
  return { status, headers: { ...headers, ...typeOf(plan) }, body: told.body };
}

function headOfWritten(request: TableRequest, plan: WritePlan, told: Told<unknown>): Head {
  const { change } = plan;
  switch (change.kind) {
    case "insert":
      return request.method === "PUT" ? headOfPut(request, told) : headOfInsert(request, plan, change, told);
    case "update":
      return headOfChange(request, contentRange(0, lastOf(0, told.page), countOf(request, told)), OF_UPDATES);
    case "delete":
      return headOfChange(request, contentRange(1, 0, countOf(request, told)), OF_DELETES);
  }
}

const OF_PUTS: readonly PreferenceName[] = ["return", ...OF_READS];
const OF_INSERTS: readonly PreferenceName[] = ["resolution", "missing", "return", ...OF_READS];
const OF_UPDATES: readonly PreferenceName[] = ["missing", "return", ...OF_CALLS];
const OF_DELETES: readonly PreferenceName[] = ["return", ...OF_CALLS];

type Insert = Extract<WritePlan["change"], { kind: "insert" }>;

function headOfPut(request: TableRequest, told: Told<unknown>): Head {
  const status = (told.inserted ?? 0) > 0 ? 201 : 200;
  return { status: showsRows(request) ? status : 204, headers: applied(request, OF_PUTS) };
}

function headOfInsert(
  request: TableRequest,
  { table, location }: WritePlan,
  change: Insert,
  told: Told<unknown>,
): Head {
  const meaningful = change.conflict ? OF_INSERTS : OF_INSERTS.filter((name) => name !== "resolution");
  const range = contentRange(1, 0, countOf(request, told));
  const headers: Headers = { "Content-Range": range, ...applied(request, meaningful) };
  if (location && told.location) headers.Location = locationOf(table.name, location, told.location);
  return { status: isNew(request, told) ? 201 : 200, headers };
}

/** Of changes to rows that were there before. */
function headOfChange(request: TableRequest, range: string, meaningful: readonly PreferenceName[]): Head {
  return {
    status: showsRows(request) ? 200 : 204,
    headers: { "Content-Range": range, ...applied(request, meaningful) },
  };
}

/** Where nothing was there to be merged with, for want of a key, all rows are. */
function isNew({ preferences }: TableRequest, { inserted, page }: Told<unknown>): boolean {
  return preferences.resolution !== "merge-duplicates" || (inserted ?? page ?? 0) > 0;
}

/** What is planned speaks of rows to be read. */
function countOf({ preferences: { count } }: TableRequest, { page }: Told<unknown>): number | null {
  return count === "exact" || count === "estimated" ? page : null;
}

function showsRows({ preferences }: TableRequest): boolean {
  return preferences.return === "representation";
}

function sendExplanation<B extends Body>(plan: Plan, told: Told<B>): Sent<B> {
  return { status: 200, headers: typeOf(plan), body: told.body };
}

/** `/films?id=eq.7` */
function locationOf(table: string, columns: readonly string[], values: readonly (string | null)[]): string {
  const key = columns.map((name, index) => {
    const value = values[index] ?? null;
    return `${encodeURIComponent(name)}=${value === null ? "is.null" : `eq.${encodeURIComponent(value)}`}`;
  });
  return `/${encodeURIComponent(table)}?${key.join("&")}`;
}

function applied({ preferences }: TableRequest, meaningful: readonly PreferenceName[]): Headers {
  const header = preferenceApplied(preferences, meaningful);
  return header === null ? {} : { "Preference-Applied": header };
}

function typeOf({ format }: Plan): Headers {
  return { "Content-Type": contentTypeOf(format) };
}
