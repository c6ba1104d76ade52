import { ApiError } from "../../../engine/errors.ts";
import { runStepwise } from "../../../engine/stepwise.ts";
import type { GatewayResponse } from "../../http.ts";
import type { Condition, SelectItem } from "../../statement/intent.ts";
import type { Asked, AskRows } from "../asked.ts";
import { isRow } from "../belonging.ts";
import { deleteIntent, readIntent, updateIntent } from "../intents.ts";
import { parseRowParameters } from "../parse/parameters.ts";
import { parsePayload } from "../parse/payload.ts";
import { conditionOf, isMet, parsePreconditions } from "../parse/preconditions.ts";
import { readBodyRecords } from "../parse/records.ts";
import type { Target } from "../parse/target.ts";
import { noRow, notPermitted, preconditionFailed } from "../refusals.ts";
import { digestOf } from "../send/entity-tag.ts";
import { withLinks } from "../send/links.ts";
import { sendRow } from "../send/row.ts";
import { about, rowOf } from "./read.ts";
import { stillUnmodified } from "./unmodified.ts";

/** PUT and PATCH. */
export async function change(asked: Asked, ask: AskRows): Promise<GatewayResponse> {
  const { request, target, parameters, collections, settings } = asked;
  const { collection } = target;
  const { select, links } = parseRowParameters(parameters, about(asked));
  if (request.headers["content-range"] !== undefined) throw partOfRow();
  const { version } = collections;
  const records = await readBodyRecords(asked);
  const verb = request.method === "PUT" && settings.putSemantics === "replace" ? "replace" : "merge";
  const addressed = addressedBy(target);
  const rules = { collection, version, verb, fixed: new Map(), addressed } as const;
  const payload = await runStepwise(parsePayload(records, rules), request.signal);
  const wish = { select, conditions: await conditionsOf(asked, ask) };
  // Where nothing is to be changed, the rows of a view may be such as cannot be locked.
  const isRead = payload.columns.length === 0 && collection.table.kind.endsWith("view");
  const update = { payload, missingAsDefault: verb === "replace" };
  const rows = await ask(isRead ? readIntent(collection, wish) : updateIntent(collection, wish, update));
  if (rows.count === 0) throw await whyNothing(asked, select, ask);
  const text = rowOf(rows.text);
  const linked = links || asked.agreed.links ? await withLinks(text, collection, asked, ask) : null;
  return sendRow(asked, { status: 200, text, collection, select, linked });
}

/** To take it for the whole would lose the rest (RFC 9110, 14.5). */
function partOfRow(): ApiError {
  return new ApiError(400, "VALIDATION_ERROR", "A row is not sent in parts: leave Content-Range out.");
}

/** The key, and what says which row it lies within. */
function addressedBy({ collection, nested }: Target): ReadonlySet<string> {
  const references = nested?.relationship.columns.map(({ target }) => target) ?? [];
  return new Set([...collection.key.map(({ column }) => column.name), ...references]);
}

export async function remove(asked: Asked, ask: AskRows): Promise<GatewayResponse> {
  const { collection } = asked.target;
  const { select } = parseRowParameters(asked.parameters, about(asked));
  const rows = await ask(deleteIntent(collection, { select, conditions: await conditionsOf(asked, ask) }));
  if (rows.count === 0) throw await whyNothing(asked, select, ask);
  return { status: 204, headers: {}, body: null };
}

/** Part of the statement itself: nobody can change the row between the look at it and the change. */
export async function conditionsOf(asked: Asked, ask: AskRows): Promise<readonly Condition[]> {
  const { collection, key, nested, parents } = asked.target;
  return [
    ...isRow({ collection, key: key!, nested }, parents),
    ...parsePreconditions(asked.request.headers).map(conditionOf),
    ...(await stillUnmodified(asked, ask)),
  ];
}

/** Nothing was written: the row is not there, or is no longer what the client knows, or is not the caller's to change. */
export async function whyNothing(asked: Asked, select: readonly SelectItem[], ask: AskRows): Promise<ApiError> {
  const { target, request, caller, settings } = asked;
  const { collection, key, nested, parents } = target;
  const conditions = isRow({ collection, key: key!, nested }, parents);
  const rows = await ask(readIntent(collection, { select, conditions }));
  if (rows.count === 0) return noRow(collection);
  const digest = digestOf(rowOf(rows.text));
  const isAsKnown = parsePreconditions(request.headers).every((precondition) => isMet(precondition, digest));
  if (!isAsKnown) return preconditionFailed();
  await stillUnmodified(asked, ask);
  return notPermitted({ anonymous: caller.role === settings.anonRole });
}
