import { runStepwise } from "../../engine/concurrency/stepwise.ts";
import { type JsonMember, type JsonRecord, NO_RECORD_LIMITS, readJsonRecords } from "../../engine/json/json-records.ts";
import { toAddressText } from "../../engine/json/json-values.ts";
import { publicBasePath } from "../http/public-url.ts";
import type { GatewayResponse } from "../http/response.ts";
import { permissionDenied } from "./errors.ts";
import { makeInsertIntent } from "./intents.ts";
import { formatKey } from "./parse/address.ts";
import { selectEveryField } from "./parse/fields.ts";
import { parseRowParameters } from "./parse/parameters.ts";
import { type BodyRecords, type PayloadRules, parsePayload, readBodyRecords } from "./parse/payload.ts";
import { onlyRow, parameterContext, readParent } from "./read.ts";
import type { ResourceRequest, ResourceRows, ResourceTransaction, RunIntent } from "./request.ts";
import { withLinks } from "./respond/links.ts";
import { respondWithRow } from "./respond/respond.ts";

/** One row of an object, several of an array. */
export async function createRows(
  parsed: ResourceRequest,
  { run, inTransaction }: ResourceTransaction,
): Promise<GatewayResponse> {
  const { target, parameters, negotiated: agreed } = parsed;
  const { collection } = target;
  const { links } = parseRowParameters(parameters, parameterContext(parsed), { choosing: false });
  const sent = await readBodyRecords(parsed);
  const rows =
    target.nested === null
      ? await run(await toInsertIntent(sent, parsed, new Map()))
      : await inTransaction((runWithin) => createWithinParent(sent, parsed, runWithin));
  // Who may write and not read is told no more than that, nor is anybody where a trigger has put the row elsewhere.
  const isReturned = collection.returnsInserted && (sent.isList || rows.count > 0);
  if (!isReturned) return { status: 201, headers: {}, body: null };
  const isLinked = links || agreed.links;
  if (!sent.isList) {
    const text = onlyRow(rows.text);
    const headers = await locationOf(text, parsed);
    const linked = isLinked ? await withLinks(text, collection, parsed, run) : null;
    return respondWithRow(parsed, {
      status: 201,
      text,
      collection,
      select: selectEveryField(collection),
      linked,
      headers,
    });
  }
  const body = isLinked ? await withLinks(rows.text, collection, parsed, run) : rows.text;
  return { status: 201, headers: { "Content-Type": agreed.contentType }, body };
}

/** What the address says of the row is written where the caller may write it. Else it must be what the database has made of it. */
async function createWithinParent(sent: BodyRecords, parsed: ResourceRequest, run: RunIntent): Promise<ResourceRows> {
  const { target, caller, settings } = parsed;
  const parentValues = [...(await readParent(parsed, run))].map(([column, value]) => {
    return { field: target.collection.fields.find((each) => each.column.name === column), column, value };
  });
  const fixed = new Map(
    parentValues.filter(({ field }) => field?.insertable).map(({ column, value }) => [column, value]),
  );
  const unset = parentValues.filter(({ column }) => !fixed.has(column));
  const rows = await run(await toInsertIntent(sent, parsed, fixed));
  const isThere = (row: RowMembers) =>
    unset.every(({ field, value }) => field?.readable && toAddressText(row.get(field.name)?.value) === value);
  const isRight = unset.length === 0 || (await readReturnedRows(rows.text))?.every((row) => isThere(row.members()));
  if (!isRight) throw permissionDenied({ anonymous: caller.role === settings.anonRole });
  return rows;
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

/** Of what Postgres has answered; null where it shows none. */
async function readReturnedRows(text: string): Promise<readonly JsonRecord[] | null> {
  const found = await runStepwise(readJsonRecords(Buffer.from(text), NO_RECORD_LIMITS));
  return found.kind === "object" || found.kind === "list" ? found.records : null;
}
