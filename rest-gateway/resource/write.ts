import { runStepwise } from "../../engine/concurrency/stepwise.ts";
import { type JsonMember, type JsonRecord, NO_RECORD_LIMITS, readJsonRecords } from "../../engine/json/json-records.ts";
import { toAddressText } from "../../engine/json/json-values.ts";
import type { Intent, RowCondition, SelectItem } from "../../engine/statement/intent.ts";
import { HttpError } from "../../http/http-error.ts";
import { publicBasePath } from "../http/paths.ts";
import type { GatewayResponse } from "../http/response.ts";
import { conditionOf, digestOf, findRowChange, isMet, parsePreconditions } from "./conditional-requests.ts";
import { permissionDenied, preconditionFailed, rowNotFound } from "./errors.ts";
import type { CollectionField } from "./fields.ts";
import {
  equalsCondition,
  makeDeleteIntent,
  makeInsertIntent,
  makeReadIntent,
  makeUpdateIntent,
  rowConditions,
} from "./intents.ts";
import { formatKey, type ResourceTarget } from "./parse/address.ts";
import { selectEveryField } from "./parse/fields.ts";
import { parseRowParameters } from "./parse/parameters.ts";
import { type BodyRecords, type PayloadRules, parsePayload, readBodyRecords } from "./parse/payload.ts";
import { onlyRow, parameterContext, readParent } from "./read.ts";
import type { ResourceOperation, ResourceRequest, ResourceRows, RunRows } from "./request.ts";
import { withLinks } from "./respond/links.ts";
import { respondWithRow } from "./respond/respond.ts";

const UPDATED_COLUMN = "updated_at";

type RequestedRow = { readonly select: readonly SelectItem[]; readonly links: boolean };

/** PUT and PATCH. */
export function changeRow(resource: ResourceRequest, requirePrivilege: () => void): ResourceOperation {
  const { collection } = resource.target;
  let requested: RequestedRow;
  return {
    intent: (run) => {
      requirePrivilege();
      requested = parseRowParameters(resource.parameters, parameterContext(resource));
      return makeChangeIntent(resource, requested.select, run);
    },
    respond: async (rows, run) => {
      const { select, links } = requested;
      if (rows.count === 0) throw await explainNothingWritten(resource, select, run);
      const text = onlyRow(rows.text);
      const linked = links || resource.negotiated.links ? await withLinks(text, collection, resource, run) : null;
      return respondWithRow(resource, { status: 200, text, collection, select, linked });
    },
  };
}

async function makeChangeIntent(
  resource: ResourceRequest,
  select: readonly SelectItem[],
  run: RunRows,
): Promise<Intent> {
  const { request, target, collections, settings } = resource;
  const { collection } = target;
  if (request.headers["content-range"] !== undefined) throw partialRowError();
  const records = await readBodyRecords(resource);
  const verb = request.method === "PUT" && settings.putSemantics === "replace" ? "replace" : "merge";
  const addressed = addressedColumns(target);
  const rules = { collection, version: collections.version, verb, fixed: new Map(), addressed } as const;
  const payload = await runStepwise(parsePayload(records, rules), request.signal);
  const query = { select, conditions: await writeConditions(resource, run) };
  // Where nothing is to be changed, the row of a view may be one that cannot be locked.
  const isRead = payload.columns.length === 0 && collection.table.kind.endsWith("view");
  if (isRead) return makeReadIntent(collection, query);
  return makeUpdateIntent(collection, query, { payload, missingAsDefault: verb === "replace" });
}

/** A part taken for the whole row would lose the rest (RFC 9110, section 14.5). */
function partialRowError(): HttpError {
  return new HttpError(400, "VALIDATION_ERROR", "A row cannot be written in parts: remove the Content-Range header.");
}

/** The columns of the key, and those that refer to the row above. */
function addressedColumns({ collection, nested }: ResourceTarget): ReadonlySet<string> {
  const references = nested?.relationship.columns.map(({ target }) => target) ?? [];
  return new Set([...collection.key.map(({ column }) => column.name), ...references]);
}

export function deleteRow(resource: ResourceRequest, requirePrivilege: () => void): ResourceOperation {
  const { collection } = resource.target;
  let select: readonly SelectItem[];
  return {
    intent: async (run) => {
      requirePrivilege();
      ({ select } = parseRowParameters(resource.parameters, parameterContext(resource)));
      return makeDeleteIntent(collection, { select, conditions: await writeConditions(resource, run) });
    },
    respond: async (rows, run) => {
      if (rows.count === 0) throw await explainNothingWritten(resource, select, run);
      return { status: 204, headers: {}, body: null };
    },
  };
}

/** They are part of the statement, so the row cannot change between the check and the write. */
export async function writeConditions(parsed: ResourceRequest, run: RunRows): Promise<readonly RowCondition[]> {
  const { collection, key, nested, parents } = parsed.target;
  return [
    ...rowConditions({ collection, key: key!, nested }, parents),
    ...parsePreconditions(parsed.request.headers).map(conditionOf),
    ...(await unmodifiedConditions(parsed, run)),
  ];
}

/** Why no row was written: it does not exist, differs from the client's copy, or policies forbid it. */
export async function explainNothingWritten(
  parsed: ResourceRequest,
  select: readonly SelectItem[],
  run: RunRows,
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
 * `If-Unmodified-Since`, ignored beside a tag (RFC 9110, section 13.1.4). Throws if the row was modified later; otherwise
 * the write requires that the row is still the one read here.
 */
async function unmodifiedConditions(
  { request, target }: ResourceRequest,
  run: RunRows,
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

/** An object creates one row, an array several. */
export function createRows(resource: ResourceRequest, requirePrivilege: () => void): ResourceOperation {
  const { target, parameters } = resource;
  let requested: { readonly links: boolean };
  let sent: BodyRecords;
  let parent: ParentValues = NO_PARENT;
  return {
    intent: async (run) => {
      requirePrivilege();
      requested = parseRowParameters(parameters, parameterContext(resource), { choosing: false });
      sent = await readBodyRecords(resource);
      await countSignUps(resource, sent.records.length);
      if (target.nested !== null) parent = toParentValues(await readParent(resource, run), resource);
      return toInsertIntent(sent, resource, parent.inserted);
    },
    respond: async (rows, run) => {
      await requireParent(rows, parent, resource);
      return respondWithCreated(rows, { isList: sent.isList, links: requested.links, resource, run });
    },
  };
}

async function countSignUps(
  { request, target, caller, settings, limitSignUps }: ResourceRequest,
  count: number,
): Promise<void> {
  const isCounted = target.collection.countsSignUps && caller.role === settings.anonRole;
  if (isCounted) await limitSignUps?.(request, count);
}

/** The values by which a new row refers to the row above in the address. */
type ParentValues = {
  /** Values for columns that the caller may insert. */
  readonly inserted: PayloadRules["fixed"];
  /** Values of the other columns, which the database must have set. */
  readonly expected: readonly { readonly field: CollectionField | undefined; readonly value: string }[];
};

const NO_PARENT: ParentValues = { inserted: new Map(), expected: [] };

function toParentValues(parent: ReadonlyMap<string, string>, { target }: ResourceRequest): ParentValues {
  const values = [...parent].map(([column, value]) => {
    return { field: target.collection.fields.find((each) => each.column.name === column), column, value };
  });
  const inserted = values.filter(({ field }) => field?.insertable).map(({ column, value }) => [column, value] as const);
  return { inserted: new Map(inserted), expected: values.filter(({ field }) => !field?.insertable) };
}

async function requireParent(
  { text }: ResourceRows,
  { expected }: ParentValues,
  { caller, settings }: ResourceRequest,
): Promise<void> {
  if (expected.length === 0) return;
  const isNested = (row: RowMembers) =>
    expected.every(({ field, value }) => field?.readable && toAddressText(row.get(field.name)?.value) === value);
  const isRight = (await readReturnedRows(text))?.every((row) => isNested(row.members()));
  if (!isRight) throw permissionDenied({ anonymous: caller.role === settings.anonRole });
}

type CreatedRows = {
  readonly isList: boolean;
  readonly links: boolean;
  readonly resource: ResourceRequest;
  readonly run: RunRows;
};

async function respondWithCreated(
  rows: ResourceRows,
  { isList, links, resource, run }: CreatedRows,
): Promise<GatewayResponse> {
  const { target, negotiated } = resource;
  const { collection } = target;
  // The row is not shown to a caller who may not read it, nor where a trigger has put it elsewhere.
  const isReturned = collection.returnsInserted && (isList || rows.count > 0);
  if (!isReturned) return { status: 201, headers: {}, body: null };
  const isLinked = links || negotiated.links;
  if (isList) {
    const body = isLinked ? await withLinks(rows.text, collection, resource, run) : rows.text;
    return { status: 201, headers: { "Content-Type": negotiated.contentType }, body };
  }
  const text = onlyRow(rows.text);
  const headers = await locationOf(text, resource);
  const linked = isLinked ? await withLinks(text, collection, resource, run) : null;
  const select = selectEveryField(collection);
  return respondWithRow(resource, { status: 201, text, collection, select, linked, headers });
}

async function toInsertIntent(
  sent: BodyRecords,
  { request, target, collections }: ResourceRequest,
  fixed: PayloadRules["fixed"],
) {
  const { collection } = target;
  const { version } = collections;
  const rules = { collection, version, verb: "create", fixed, addressed: new Set<string>() } as const;
  const payload = await runStepwise(parsePayload(sent, rules), request.signal);
  return makeInsertIntent(collection, { select: selectEveryField(collection) }, payload);
}

/** `/users/7`, below the address that it was sent to. */
async function locationOf(
  text: string,
  { target: { collection }, address, settings }: ResourceRequest,
): Promise<Readonly<Record<string, string>>> {
  const row = (await readReturnedRows(text))?.[0]?.members();
  const isShown = collection.key.every(({ name }) => row?.has(name));
  const key = isShown ? formatKey(collection.key.map(({ name }) => toAddressText(row!.get(name)!.value))) : null;
  return key === null ? {} : { Location: `${publicBasePath(settings.publicUrl)}${address.canonical}/${key}` };
}

type RowMembers = ReadonlyMap<string, JsonMember>;

/** The rows of the result; null if it contains none. */
async function readReturnedRows(text: string): Promise<readonly JsonRecord[] | null> {
  const found = await runStepwise(readJsonRecords(Buffer.from(text), NO_RECORD_LIMITS));
  return found.kind === "object" || found.kind === "list" ? found.records : null;
}
