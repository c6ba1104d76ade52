import { runStepwise } from "../../engine/concurrency/stepwise.ts";
import type { RowCondition, SelectItem } from "../../engine/statement/intent.ts";
import { HttpError } from "../../http/http-error.ts";
import type { GatewayResponse } from "../http/response.ts";
import { conditionOf, digestOf, findRowChange, isMet, parsePreconditions } from "./conditional-requests.ts";
import { permissionDenied, preconditionFailed, rowNotFound } from "./errors.ts";
import { equalsCondition, makeDeleteIntent, makeReadIntent, makeUpdateIntent, rowConditions } from "./intents.ts";
import type { ResourceTarget } from "./parse/address.ts";
import { selectEveryField } from "./parse/fields.ts";
import { parseRowParameters } from "./parse/parameters.ts";
import { parsePayload, readBodyRecords } from "./parse/payload.ts";
import { onlyRow, parameterContext } from "./read.ts";
import type { ResourceRequest, RunIntent } from "./request.ts";
import { withLinks } from "./respond/links.ts";
import { respondWithRow } from "./respond/respond.ts";

const UPDATED_COLUMN = "updated_at";

/** PUT and PATCH. */
export async function changeRow(parsed: ResourceRequest, run: RunIntent): Promise<GatewayResponse> {
  const { request, target, parameters, collections, settings } = parsed;
  const { collection } = target;
  const { select, links } = parseRowParameters(parameters, parameterContext(parsed));
  if (request.headers["content-range"] !== undefined) throw partialRowError();
  const { version } = collections;
  const records = await readBodyRecords(parsed);
  const verb = request.method === "PUT" && settings.putSemantics === "replace" ? "replace" : "merge";
  const addressed = addressedColumns(target);
  const rules = { collection, version, verb, fixed: new Map(), addressed } as const;
  const payload = await runStepwise(parsePayload(records, rules), request.signal);
  const query = { select, conditions: await writeConditions(parsed, run) };
  // Where nothing is to be changed, the rows of a view may be such as cannot be locked.
  const isRead = payload.columns.length === 0 && collection.table.kind.endsWith("view");
  const update = { payload, missingAsDefault: verb === "replace" };
  const rows = await run(isRead ? makeReadIntent(collection, query) : makeUpdateIntent(collection, query, update));
  if (rows.count === 0) throw await explainNothingWritten(parsed, select, run);
  const text = onlyRow(rows.text);
  const linked = links || parsed.negotiated.links ? await withLinks(text, collection, parsed, run) : null;
  return respondWithRow(parsed, { status: 200, text, collection, select, linked });
}

/** To take it for the whole would lose the rest (RFC 9110, 14.5). */
function partialRowError(): HttpError {
  return new HttpError(400, "VALIDATION_ERROR", "A row cannot be written in parts: remove the Content-Range header.");
}

/** The key, and what says which row it lies within. */
function addressedColumns({ collection, nested }: ResourceTarget): ReadonlySet<string> {
  const references = nested?.relationship.columns.map(({ target }) => target) ?? [];
  return new Set([...collection.key.map(({ column }) => column.name), ...references]);
}

export async function deleteRow(parsed: ResourceRequest, run: RunIntent): Promise<GatewayResponse> {
  const { collection } = parsed.target;
  const { select } = parseRowParameters(parsed.parameters, parameterContext(parsed));
  const rows = await run(makeDeleteIntent(collection, { select, conditions: await writeConditions(parsed, run) }));
  if (rows.count === 0) throw await explainNothingWritten(parsed, select, run);
  return { status: 204, headers: {}, body: null };
}

/** Part of the statement itself: nobody can change the row between the look at it and the change. */
export async function writeConditions(parsed: ResourceRequest, run: RunIntent): Promise<readonly RowCondition[]> {
  const { collection, key, nested, parents } = parsed.target;
  return [
    ...rowConditions({ collection, key: key!, nested }, parents),
    ...parsePreconditions(parsed.request.headers).map(conditionOf),
    ...(await unmodifiedConditions(parsed, run)),
  ];
}

/** Nothing was written: the row is not there, or is no longer what the client knows, or is not the caller's to change. */
export async function explainNothingWritten(
  parsed: ResourceRequest,
  select: readonly SelectItem[],
  run: RunIntent,
): Promise<HttpError> {
  const { target, request, caller, settings } = parsed;
  const { collection, key, nested, parents } = target;
  const conditions = rowConditions({ collection, key: key!, nested }, parents);
  const rows = await run(makeReadIntent(collection, { select, conditions }));
  if (rows.count === 0) return rowNotFound(collection);
  const digest = digestOf(onlyRow(rows.text));
  const isAsKnown = parsePreconditions(request.headers).every((precondition) => isMet(precondition, digest));
  if (!isAsKnown) return preconditionFailed();
  await unmodifiedConditions(parsed, run);
  return permissionDenied({ anonymous: caller.role === settings.anonRole });
}

/**
 * `If-Unmodified-Since`, of who shows no tag (RFC 9110, 13.1.4). Refuses when the row is a later one; else it has to be
 * the one that was looked at here when something is written.
 */
async function unmodifiedConditions(
  { request, target }: ResourceRequest,
  run: RunIntent,
): Promise<readonly RowCondition[]> {
  const { "if-unmodified-since": date, "if-match": tag } = request.headers;
  const since = Date.parse(date ?? "");
  if (Number.isNaN(since) || tag !== undefined) return [];
  const { collection, key, nested, parents } = target;
  const conditions = rowConditions({ collection, key: key!, nested }, parents);
  const { text, count } = await run(makeReadIntent(collection, { select: selectEveryField(collection), conditions }));
  const change = count === 0 ? null : findRowChange(onlyRow(text), since, collection, Date.now());
  if (change === null) return [];
  if (change.isLater) throw preconditionFailed();
  return [change.at === null ? isNull(UPDATED_COLUMN) : equalsCondition(UPDATED_COLUMN, change.at)];
}

function isNull(name: string): RowCondition {
  return { kind: "filter", field: { name, path: [] }, negated: false, operation: { kind: "is", value: "null" } };
}
