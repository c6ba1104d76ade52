import type { IncomingHttpHeaders } from "node:http";
import {
  digestOf,
  type GatewayResponse,
  HttpError,
  isMet,
  matchesTag,
  parsePreconditions,
  type ResponseBody,
} from "#http";
import type { Plan, RunResult } from "#planner";
import type { Intent, ReadIntent, ResponseFormat, ResponseOptions } from "#planner/intent";
import type { RunIntent } from "#rest-gateway/dialect";
import type { TableRequest } from "./parse/request.ts";

const CHANGING_METHODS: readonly string[] = ["PATCH", "PUT", "DELETE"];
const TAGGED_STATUSES: readonly number[] = [200, 201, 206];
const OPENING = Buffer.from("[");
const CLOSING = Buffer.from("]");
const LIST_FORMAT: ResponseFormat = { kind: "media", type: "application/json" };
const STRIPPED_LIST_FORMAT: ResponseFormat = {
  kind: "array",
  type: "application/vnd.pgrst.array+json;nulls=stripped",
  nulls: "stripped",
};

/** A request for a tag. Tags are not computed for all responses, because that takes time for all clients, and few use them. */
export type TagRequest = { readonly ifNoneMatch: string | undefined; readonly isPreferred: boolean };

/** Returns the request for a tag; null if the client makes none. */
export function tagRequestOf({ method, preferences }: TableRequest, headers: IncomingHttpHeaders): TagRequest | null {
  const isPreferred = preferences.etag !== null;
  const ifNoneMatch = method === "GET" ? headers["if-none-match"] : undefined;
  return isPreferred || ifNoneMatch !== undefined ? { ifNoneMatch, isPreferred } : null;
}

/** Adds the tag of the body, or returns 304 if the client has it. The tag of a streamed body is not known in time. */
export function withEntityTag<Body extends ResponseBody>(
  response: GatewayResponse<Body>,
  { ifNoneMatch, isPreferred }: TagRequest,
  { body }: RunResult,
  plan: Plan,
): GatewayResponse<Body> {
  const { status, headers } = response;
  // A function may have set a tag.
  const isTagged = TAGGED_STATUSES.includes(status) && response.body !== null && headers.ETag === undefined;
  const isWhole = typeof body === "string" || Buffer.isBuffer(body);
  if (!isTagged || !isWhole) return response;
  const tag = tagOf(body, plan);
  const applied = [headers["Preference-Applied"] ?? [], isPreferred ? "etag" : []].flat().join(", ");
  const tagged: GatewayResponse["headers"] = {
    ...headers,
    ETag: tag,
    ...(applied && { "Preference-Applied": applied }),
  };
  if (!matchesTag(ifNoneMatch, tag)) return { ...response, headers: tagged };
  const { "Content-Type": _type, ...kept } = tagged;
  return { status: 304, headers: kept, body: null };
}

/** Returns the tag. An object has the digest of the list with this row only, with which the tags of both are compared. */
function tagOf(body: string | Buffer, { body: bodyPlan }: Plan): string {
  const isObject = bodyPlan.kind === "json" && bodyPlan.of === "row";
  return isObject
    ? `"${digestOf(Buffer.concat([OPENING, Buffer.from(body), CLOSING]))}.object"`
    : `"${digestOf(body)}"`;
}

export function hasPreconditions(method: string, headers: IncomingHttpHeaders): boolean {
  return (
    CHANGING_METHODS.includes(method) && (headers["if-match"] !== undefined || headers["if-none-match"] !== undefined)
  );
}

/** Makes the check that compares the rows that a write changes, as a GET of the same path returns them, with the client's tags. */
export function makePrecheck(
  intent: Intent,
  headers: IncomingHttpHeaders,
  { maxRows }: { readonly maxRows: number | null },
): (run: RunIntent) => Promise<void> {
  const { target, selection } = intent;
  // A write ignores the range of its rows, so a tag of some of them matches nothing.
  const ranges = selection.ranges.filter(({ path }) => path.length > 0);
  const count = maxRows === null ? null : "exact";
  const read: ReadIntent = { kind: "read", target, selection: { ...selection, ranges }, count, page: null };
  return async (run) => {
    const { body, rowCount, total } = await run(read);
    const isCut = total !== null && total > rowCount!;
    const digest = isCut ? "" : digestOf((body ?? "") as string | Buffer);
    const isDone = parsePreconditions(headers).every((precondition) =>
      precondition.any ? rowCount! > 0 !== precondition.negated : isMet(precondition, digest),
    );
    if (!isDone) throw preconditionFailed();
  };
}

/** Returns the options for the rows that are compared. */
export function comparisonOptions({ accept }: Pick<TableRequest, "accept">): ResponseOptions {
  return { formats: accept.map(toListFormat), includesBody: true, maxAffected: null };
}

function toListFormat(format: ResponseFormat): ResponseFormat {
  if (format.kind === "plan") return toListFormat(format.of);
  if (format.kind !== "object") return format;
  return format.nulls === "stripped" ? STRIPPED_LIST_FORMAT : LIST_FORMAT;
}

export function preconditionFailed(cause?: unknown): HttpError {
  return new HttpError(412, "PGRST182", "The rows are not those of If-Match or If-None-Match", {
    details: "Nothing was changed.",
    hint: "Read them again, with the filters and the select of this request, and send their ETag.",
    cause,
  });
}
