import { textOfValue } from "../../../engine/exact-json.ts";
import { type JsonMember, type JsonRecord, NO_LIMITS, readRecords } from "../../../engine/json/records.ts";
import { runStepwise } from "../../../engine/stepwise.ts";
import type { GatewayResponse } from "../../http.ts";
import { publicPath } from "../../public-address.ts";
import type { Asked, AskRows, Exchange, Rows } from "../asked.ts";
import { insertIntent } from "../intents.ts";
import { formatKey } from "../parse/key.ts";
import { parseRowParameters } from "../parse/parameters.ts";
import { type PayloadRules, parsePayload } from "../parse/payload.ts";
import { type Records, readBodyRecords } from "../parse/records.ts";
import { everyField } from "../parse/selected-fields.ts";
import { notPermitted } from "../refusals.ts";
import { withLinks } from "../send/links.ts";
import { sendRow } from "../send/row.ts";
import { readParent } from "./parents.ts";
import { about, rowOf } from "./read.ts";

/** One row of an object, several of an array. */
export async function create(asked: Asked, { ask, together }: Exchange): Promise<GatewayResponse> {
  const { target, parameters, agreed } = asked;
  const { collection } = target;
  const { links } = parseRowParameters(parameters, about(asked), { choosing: false });
  const sent = await readBodyRecords(asked);
  const rows =
    target.nested === null
      ? await ask(await toIntent(sent, asked, new Map()))
      : await together((askWithin) => createWithin(sent, asked, askWithin));
  // Who may write and not read is told no more than that, nor is anybody where a trigger has put the row elsewhere.
  const isTold = collection.showsNew && (sent.isList || rows.count > 0);
  if (!isTold) return { status: 201, headers: {}, body: null };
  const isLinked = links || agreed.links;
  if (!sent.isList) {
    const text = rowOf(rows.text);
    const headers = await locationOf(text, asked);
    const linked = isLinked ? await withLinks(text, collection, asked, ask) : null;
    return sendRow(asked, { status: 201, text, collection, select: everyField(collection), linked, headers });
  }
  const shown = isLinked ? await withLinks(rows.text, collection, asked, ask) : rows.text;
  return { status: 201, headers: { "Content-Type": agreed.contentType }, body: shown };
}

/** What the address says of the row is written where the caller may write it. Else it must be what the database has made of it. */
async function createWithin(sent: Records, asked: Asked, ask: AskRows): Promise<Rows> {
  const { target, caller, settings } = asked;
  const said = [...(await readParent(asked, ask))].map(([column, value]) => {
    return { field: target.collection.fields.find((each) => each.column.name === column), column, value };
  });
  const fixed = new Map(said.filter(({ field }) => field?.insertable).map(({ column, value }) => [column, value]));
  const unsaid = said.filter(({ column }) => !fixed.has(column));
  const rows = await ask(await toIntent(sent, asked, fixed));
  const isThere = (row: Members) =>
    unsaid.every(({ field, value }) => field?.readable && textOfValue(row.get(field.name)?.value) === value);
  const isRight = unsaid.length === 0 || (await rowsOf(rows.text))?.every((row) => isThere(row.members()));
  if (!isRight) throw notPermitted({ anonymous: caller.role === settings.anonRole });
  return rows;
}

async function toIntent(sent: Records, { request, target, collections }: Asked, fixed: PayloadRules["fixed"]) {
  const { collection } = target;
  const { version } = collections;
  const rules = { collection, version, verb: "create", fixed, addressed: new Set<string>() } as const;
  const payload = await runStepwise(parsePayload(sent, rules), request.signal);
  return insertIntent(collection, { select: everyField(collection) }, payload);
}

/** `/users/7`, below the address that it was sent to. */
async function locationOf(
  text: string,
  { target: { collection }, address, settings }: Asked,
): Promise<Readonly<Record<string, string>>> {
  const row = (await rowsOf(text))?.[0]?.members();
  const isShown = collection.key.every(({ name }) => row?.has(name));
  const key = isShown ? formatKey(collection.key.map(({ name }) => textOfValue(row!.get(name)!.value))) : null;
  return key === null ? {} : { Location: `${publicPath(settings.publicUrl)}${address.canonical}/${key}` };
}

type Members = ReadonlyMap<string, JsonMember>;

/** Of what Postgres has answered; null where it shows none. */
async function rowsOf(text: string): Promise<readonly JsonRecord[] | null> {
  const found = await runStepwise(readRecords(Buffer.from(text), NO_LIMITS));
  return found.kind === "object" || found.kind === "list" ? found.records : null;
}
