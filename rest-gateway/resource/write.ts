import { mayRepeatKeys } from "#catalog";
import { digestOf, type GatewayResponse, HttpError, isMet, parsePreconditions, publicBasePath } from "#http";
import type { CallIntent, Intent, RowCondition, RowPayload, SelectItem } from "#planner/intent";
import type { FieldError } from "#runtime";
import { runStepwise } from "#runtime/concurrency";
import { type JsonMember, type JsonRecord, NO_RECORD_LIMITS, readJsonRecords, toAddressText } from "#runtime/json";
import { type RowAction, returnsRowOf } from "./collections/collections.ts";
import {
  ambiguousRow,
  errorCodesOf,
  permissionDenied,
  preconditionFailed,
  rowNotFound,
  suggestName,
  validationError,
} from "./collections/errors.ts";
import type { CollectionField } from "./collections/fields.ts";
import { conditionOf, findRowChange } from "./conditional-requests.ts";
import {
  makeDeleteIntent,
  makeInsertIntent,
  makeReadIntent,
  makeUpdateIntent,
  rowConditions,
  targetOf,
  toShape,
} from "./intents.ts";
import type { ResourceOperation, ResourceRows, RunRows, SentMembers } from "./operation.ts";
import { formatKey, type ResourceTarget } from "./parse/address.ts";
import { selectEveryField } from "./parse/fields.ts";
import { equalsCondition, parseRowParameters } from "./parse/parameters.ts";
import {
  type BodyRecords,
  type ParsedPayload,
  type PayloadRules,
  parsePayload,
  readBodyRecords,
  toJsonObject,
} from "./parse/payload.ts";
import { type ResourceRequest, readResourceBody } from "./parse/request.ts";
import { readMember, type SentMember } from "./parse/values.ts";
import { onlyRow, parameterContext, readParent } from "./read.ts";
import { respondWithRow, withLinks } from "./respond.ts";

const UPDATED_COLUMN = "updated_at";

type RequestedRow = { readonly select: readonly SelectItem[]; readonly links: boolean };

/** Handles PUT and PATCH. */
export function changeRow(resource: ResourceRequest, requirePrivilege: () => void): ResourceOperation {
  const { collection } = resource.target;
  let requested: RequestedRow;
  let sent: readonly SentMembers[] = [];
  return {
    intent: async (run) => {
      requirePrivilege();
      requested = parseRowParameters(resource.parameters, parameterContext(resource));
      const { payload, rows } = await parseChange(resource);
      sent = rows;
      return makeChangeIntent(resource, payload, requested.select, run);
    },
    sent: () => sent,
    respond: async (rows, run) => {
      const { select, links } = requested;
      if (rows.count === 0) throw await explainNothingWritten(resource, select, run);
      const text = onlyRow(rows.text);
      const linked = links || resource.negotiated.links ? await withLinks(text, collection, resource, run) : null;
      return respondWithRow(resource, { status: 200, text, collection, select, linked });
    },
  };
}

function verbOf({ request, settings }: ResourceRequest): "replace" | "merge" {
  return request.method === "PUT" && settings.putSemantics === "replace" ? "replace" : "merge";
}

async function parseChange(resource: ResourceRequest): Promise<ParsedPayload> {
  const { request, target, collections } = resource;
  const { collection } = target;
  if (request.headers["content-range"] !== undefined) throw partialRowError();
  const records = await readBodyRecords(resource);
  const verb = verbOf(resource);
  const addressed = addressedColumns(target);
  const rules = { collection, version: collections.version, verb, fixed: new Map(), addressed } as const;
  return runStepwise(parsePayload(records, rules), request.signal);
}

async function makeChangeIntent(
  resource: ResourceRequest,
  payload: RowPayload,
  select: readonly SelectItem[],
  run: RunRows,
): Promise<Intent> {
  const { collection } = resource.target;
  const query = { select, conditions: await writeConditions(resource, run) };
  // If nothing is to be changed, a view's row is only read, because it may be impossible to lock it.
  const isRead = payload.columns.length === 0 && collection.table.kind.endsWith("view");
  if (isRead) return makeReadIntent(collection, query);
  return makeUpdateIntent(collection, query, { payload, missingAsDefault: verbOf(resource) === "replace" });
}

/** The error for a partial row: a part taken for the whole row would lose the rest (RFC 9110, section 14.5). */
function partialRowError(): HttpError {
  return new HttpError(400, "VALIDATION_ERROR", "A row cannot be written in parts: remove the Content-Range header.");
}

/** Returns the columns of the key, and those that refer to the parent row. */
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

/** Returns the conditions as part of the statement, so that the row cannot change between the check and the write. */
async function writeConditions(parsed: ResourceRequest, run: RunRows): Promise<readonly RowCondition[]> {
  const { collection, key, nested, parents } = parsed.target;
  return [
    ...rowConditions({ collection, key: key!, nested }, parents),
    ...parsePreconditions(parsed.request.headers).map(conditionOf),
    ...(await unmodifiedConditions(parsed, run)),
  ];
}

/** Explains why no row was written: it does not exist, differs from the client's copy, or policies forbid the write. */
async function explainNothingWritten(
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
 * Checks `If-Unmodified-Since`, which is ignored beside a tag (RFC 9110, section 13.1.4). Throws if the row was modified later; otherwise
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

/** Creates one row for an object, and several for an array. */
export function createRows(resource: ResourceRequest, requirePrivilege: () => void): ResourceOperation {
  const { target, parameters } = resource;
  let requested: { readonly links: boolean };
  let isList: boolean;
  let sent: readonly SentMembers[] = [];
  let parent: ParentValues = NO_PARENT;
  return {
    intent: async (run) => {
      requirePrivilege();
      requested = parseRowParameters(parameters, parameterContext(resource), { choosing: false });
      const body = await readBodyRecords(resource);
      ({ isList } = body);
      await countSignUps(resource, body.records.length);
      if (target.nested !== null) parent = toParentValues(await readParent(resource, run), resource);
      const { payload, rows } = await parseNewRows(body, resource, parent.inserted);
      sent = rows;
      return makeInsertIntent(target.collection, { select: selectEveryField(target.collection) }, payload);
    },
    sent: () => sent,
    respond: async (rows, run) => {
      await requireParent(rows, parent, resource);
      return respondWithCreated(rows, { isList, links: requested.links, resource, run });
    },
  };
}

async function countSignUps(
  { request, target, caller, limitCreatedUsers }: ResourceRequest,
  count: number,
): Promise<void> {
  if (!target.collection.countsSignUps) return;
  await limitCreatedUsers?.(caller, () => request.connection().address, count);
}

/** The values by which a new row refers to the parent row in the path. */
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
  // The row is not returned if the caller may not read it, or if a trigger has inserted it into another table.
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

async function parseNewRows(
  body: BodyRecords,
  { request, target: { collection }, collections }: ResourceRequest,
  fixed: PayloadRules["fixed"],
): Promise<ParsedPayload> {
  const { version } = collections;
  const rules = { collection, version, verb: "create", fixed, addressed: new Set<string>() } as const;
  return runStepwise(parsePayload(body, rules), request.signal);
}

/** Returns the path of the new row, `/users/7`, below the path of the request. */
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

/** Reads the rows of the result; null if it contains none. */
async function readReturnedRows(text: string): Promise<readonly JsonRecord[] | null> {
  const found = await runStepwise(readJsonRecords(Buffer.from(text), NO_RECORD_LIMITS));
  return found.kind === "object" || found.kind === "list" ? found.records : null;
}

/** Calls the function that takes the row. A returned row of the collection gets the response of a row. */
export function callAction(resource: ResourceRequest): ResourceOperation {
  const { collection, action } = resource.target;
  const { returns } = action!.routine;
  const returnsRow = returnsRowOf(collection, action!.routine);
  let requested: { readonly links: boolean };
  let sent: SentArguments = new Map();
  return {
    intent: async () => {
      requested = parseRowParameters(resource.parameters, parameterContext(resource), { choosing: false });
      sent = parseArguments(await readArguments(resource), action!, resource.collections.version);
      return makeCallIntent(resource, sent, returnsRow);
    },
    sent: () => [sent],
    // A set may be empty although the row exists; otherwise an empty result shows that there is no such row.
    precheck: returns.set || hasPreconditions(resource) ? (run) => checkPreconditions(resource, run) : undefined,
    respond: async ({ text, count }, run) => {
      if (count === 0 && !returns.set) throw rowNotFound(collection);
      if (returns.shape === "void") return { status: 204, headers: {}, body: null };
      const { negotiated } = resource;
      if (!returnsRow || returns.set) {
        return { status: 200, headers: { "Content-Type": negotiated.contentType }, body: text };
      }
      const isLinked = requested.links || negotiated.links;
      const linked = isLinked ? await withLinks(text, collection, resource, run) : null;
      return respondWithRow(resource, { status: 200, text, collection, select: selectEveryField(collection), linked });
    },
  };
}

function hasPreconditions({ request: { headers } }: ResourceRequest): boolean {
  return ["if-match", "if-none-match", "if-unmodified-since"].some((name) => headers[name] !== undefined);
}

/** Checks preconditions before the call. A change of the row between the check and the call is not detected. */
async function checkPreconditions(parsed: ResourceRequest, run: RunRows): Promise<void> {
  const { collection, key, nested, parents } = parsed.target;
  const select = selectEveryField(collection);
  if (hasPreconditions(parsed) && mayRepeatKeys(collection.table)) {
    // Only one of several rows may meet the preconditions, but the call gets all of them.
    const conditions = rowConditions({ collection, key: key!, nested }, parents);
    if ((await run(makeReadIntent(collection, { select, conditions }))).count > 1) throw ambiguousRow();
  }
  const { count } = await run(makeReadIntent(collection, { select, conditions: await writeConditions(parsed, run) }));
  if (count === 0) throw await explainNothingWritten(parsed, select, run);
  if (count > 1) throw ambiguousRow();
}

type SentArguments = ReturnType<typeof parseArguments>;

function makeCallIntent({ target }: ResourceRequest, members: SentArguments, returnsRow: boolean): CallIntent {
  const { collection, key, action, nested, parents } = target;
  const argument = {
    kind: "json",
    body: Buffer.from(toJsonObject(members)),
    names: [...members.keys()].sort(),
  } as const;
  return {
    kind: "call",
    target: targetOf(action!.routine),
    argument,
    selection: toShape({ select: returnsRow ? selectEveryField(collection) : [] }),
    count: null,
    page: null,
    readOnly: false,
    row: { of: targetOf(collection.table), conditions: rowConditions({ collection, key: key!, nested }, parents) },
  };
}

/** Reads the arguments; none without a body. */
async function readArguments(parsed: ResourceRequest): Promise<ReadonlyMap<string, JsonMember>> {
  const bytes = await readResourceBody(parsed);
  if (bytes.length === 0) return new Map();
  const { records } = await readBodyRecords(parsed);
  return records[0]!.members();
}

/** Parses the arguments, by their names in SQL. */
function parseArguments(
  sent: ReadonlyMap<string, JsonMember>,
  action: RowAction,
  version: number,
): ReadonlyMap<string, SentMember> {
  const faults: FieldError[] = [];
  const names = action.arguments.map(({ name }) => name);
  const members = new Map<string, SentMember>();
  for (const [name, member] of sent) {
    const argument = action.arguments.find((each) => each.name === name);
    if (!argument) {
      faults.push({ field: name, message: `Unknown argument.${suggestName(name, names)}` });
      continue;
    }
    const read = readMember(argument.argument.type, member);
    if (read.fault) faults.push({ field: name, message: `It ${read.fault}.` });
    members.set(argument.argument.name!, read);
  }
  if (faults.length > 0) throw validationError(faults);
  // Postgres resolves a variadic function by positional arguments only, so none may be omitted before a passed one.
  const isVariadic = action.arguments.some(({ argument }) => argument.mode === "variadic");
  const lastPlaced = isVariadic ? action.arguments.findLastIndex(({ name }) => sent.has(name)) : 0;
  const missing = action.arguments
    .filter(({ name, argument }, at) => (argument.required || at < lastPlaced) && !sent.has(name))
    .map(({ name }) => ({ field: name, message: "This argument is required." }));
  if (missing.length > 0) throw validationError(missing, errorCodesOf(version).missingField);
  return members;
}
