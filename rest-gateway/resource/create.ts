import { runStepwise } from "../../engine/concurrency/stepwise.ts";
import { type JsonMember, type JsonRecord, NO_RECORD_LIMITS, readJsonRecords } from "../../engine/json/json-records.ts";
import { toAddressText } from "../../engine/json/json-values.ts";
import { publicBasePath } from "../http/public-url.ts";
import type { GatewayResponse } from "../http/response.ts";
import { permissionDenied } from "./errors.ts";
import type { CollectionField } from "./fields.ts";
import { makeInsertIntent } from "./intents.ts";
import { formatKey } from "./parse/address.ts";
import { selectEveryField } from "./parse/fields.ts";
import { parseRowParameters } from "./parse/parameters.ts";
import { type BodyRecords, type PayloadRules, parsePayload, readBodyRecords } from "./parse/payload.ts";
import { onlyRow, parameterContext, readParent } from "./read.ts";
import type { ResourceOperation, ResourceRequest, ResourceRows, RunRows } from "./request.ts";
import { withLinks } from "./respond/links.ts";
import { respondWithRow } from "./respond/respond.ts";

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
