import type { Body, GatewayResponse } from "../../http.ts";
import type { CallPlan, Plan, ReadPlan, WritePlan } from "../../statement/plan/plan.ts";
import { notSingular } from "../../statement/plan/refusals.ts";
import type { Told } from "../../statement/run-long.ts";
import { canonicalQueryString } from "../parse/query-string.ts";
import type { TableRequest } from "../parse/request.ts";
import { contentRange, lastOf, pageStatus } from "./content-range.ts";
import { contentTypeOf } from "./content-type.ts";
import { pageHeaders } from "./page-headers.ts";
import { type PreferenceName, preferenceApplied } from "./preference-applied.ts";
import { readSqlHeaders, readSqlStatus } from "./sql-response.ts";

type Headers = Record<string, string>;

/** What an answer depends on, of what a client may say in headers. */
const VARY = "Accept, Prefer, Range";

type Sent<B> = { readonly status: number; readonly headers: Headers; readonly body: B | null };

/** What Postgres told, as the client asked to be answered. */
export function sendAnswer<B extends Body>(request: TableRequest, plan: Plan, told: Told<B>): GatewayResponse<B> {
  const { status, headers, body } = sendKind(request, plan, told);
  Object.assign(headers, pageHeaders(request.parameters, plan, told));
  if (request.profile.negotiated && headers["Content-Type"]) headers["Content-Profile"] = request.profile.schema;
  headers.Vary = VARY;
  if (told.headers === null && told.status === null) return { status, headers, body };
  const said = readSqlHeaders(told.headers);
  for (const name of Object.keys(headers)) {
    if (Object.keys(said).some((other) => other.toLowerCase() === name.toLowerCase())) delete headers[name];
  }
  return { status: readSqlStatus(told.status) ?? status, headers: { ...headers, ...said }, body };
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

function sendRows<B extends Body>(request: TableRequest, plan: ReadPlan, told: Told<B>): Sent<B> {
  if (plan.format.kind === "object" && told.page !== 1) throw notSingular(told.page!);
  const { status, range } = pageStatus(plan.rows, told.page, told.total);
  const headers: Headers = { "Content-Range": range, ...applied(request, OF_READS), ...typeOf(plan) };
  const query = request.canonicalQuery ?? canonicalQueryString(request.parameters);
  headers["Content-Location"] = `/${encodeURIComponent(plan.table.name)}${query && `?${query}`}`;
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

const OF_INSERTS: readonly PreferenceName[] = ["resolution", "missing", "return", ...OF_READS];
const OF_UPDATES: readonly PreferenceName[] = ["missing", "return", ...OF_CALLS];
const OF_DELETES: readonly PreferenceName[] = ["return", ...OF_CALLS];

function sendWritten<B extends Body>(request: TableRequest, plan: WritePlan, told: Told<B>): Sent<B> {
  const { change } = plan;
  const showsRows = request.preferences.return === "representation";
  const { count } = request.preferences;
  // What is planned speaks of rows to be read.
  const counted = count === "exact" || count === "estimated" ? told.page : null;
  const body = showsRows ? { headers: typeOf(plan), body: told.body } : { headers: {}, body: null };
  switch (change.kind) {
    case "insert": {
      const isNew = change.conflict?.resolution !== "merge" || (told.inserted ?? 0) > 0;
      if (request.method === "PUT") {
        const headers: Headers = applied(request, ["return", ...OF_READS]);
        return {
          status: showsRows ? (isNew ? 201 : 200) : 204,
          headers: { ...headers, ...body.headers },
          body: body.body,
        };
      }
      const meaningful = change.conflict ? OF_INSERTS : OF_INSERTS.filter((name) => name !== "resolution");
      const headers: Headers = { "Content-Range": contentRange(1, 0, counted), ...applied(request, meaningful) };
      if (plan.location && told.location) headers.Location = locationOf(plan.table.name, plan.location, told.location);
      return { status: isNew ? 201 : 200, headers: { ...headers, ...body.headers }, body: body.body };
    }
    case "update": {
      const headers = {
        "Content-Range": contentRange(0, lastOf(0, told.page), counted),
        ...applied(request, OF_UPDATES),
      };
      return { status: showsRows ? 200 : 204, headers: { ...headers, ...body.headers }, body: body.body };
    }
    case "delete": {
      const headers = { "Content-Range": contentRange(1, 0, counted), ...applied(request, OF_DELETES) };
      return { status: showsRows ? 200 : 204, headers: { ...headers, ...body.headers }, body: body.body };
    }
  }
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
