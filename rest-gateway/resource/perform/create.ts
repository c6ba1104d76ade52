import { parseExactly, textOfValue } from "../../../engine/exact-json.ts";
import type { GatewayResponse } from "../../http.ts";
import { publicPath } from "../../public-address.ts";
import { type Asked, type AskRows, type Exchange, type Rows, readBody } from "../asked.ts";
import { insertIntent } from "../intents.ts";
import { formatKey } from "../parse/key.ts";
import { parseRowParameters } from "../parse/parameters.ts";
import { type PayloadRules, parseBody, parsePayload } from "../parse/payload.ts";
import { everyField } from "../parse/selected-fields.ts";
import { notPermitted } from "../refusals.ts";
import { withLinks } from "../send/links.ts";
import { sendRow } from "../send/row.ts";
import { readParent } from "./parents.ts";
import { about, rowOf } from "./read.ts";

type Row = Readonly<Record<string, unknown>>;

/** One row of an object, several of an array. */
export async function create(asked: Asked, { ask, together }: Exchange): Promise<GatewayResponse> {
  const { request, target, parameters, agreed } = asked;
  const { collection } = target;
  const { links } = parseRowParameters(parameters, about(asked), { choosing: false });
  const body = parseBody(await readBody(asked), request.headers["content-type"], asked.collections.version);
  const rows =
    target.nested === null
      ? await ask(toIntent(body, asked, new Map()))
      : await together((askWithin) => createWithin(body, asked, askWithin));
  // Who may write and not read is told no more than that, nor is anybody where a trigger has put the row elsewhere.
  const isTold = collection.showsNew && (Array.isArray(body) || rows.count > 0);
  if (!isTold) return { status: 201, headers: {}, body: null };
  if (!Array.isArray(body)) {
    const text = rowOf(rows.text);
    const headers = locationOf(text, asked);
    return sendRow(asked, { status: 201, text, collection, select: everyField(collection), links, headers });
  }
  const shown = links || agreed.links ? withLinks(rows.text, collection, asked) : rows.text;
  return { status: 201, headers: { "Content-Type": agreed.contentType }, body: shown };
}

/** What the address says of the row is written where the caller may write it. Else it must be what the database has made of it. */
async function createWithin(body: unknown, asked: Asked, ask: AskRows): Promise<Rows> {
  const { target, caller, settings } = asked;
  const said = [...(await readParent(asked, ask))].map(([column, value]) => {
    return { field: target.collection.fields.find((each) => each.column.name === column), column, value };
  });
  const fixed = new Map(said.filter(({ field }) => field?.insertable).map(({ column, value }) => [column, value]));
  const unsaid = said.filter(({ column }) => !fixed.has(column));
  const rows = await ask(toIntent(body, asked, fixed));
  const isThere = (row: Row) =>
    unsaid.every(({ field, value }) => field?.readable && textOfValue(row[field.name]) === value);
  const isRight = unsaid.length === 0 || (parseExactly(rows.text) as readonly Row[] | null)?.every(isThere);
  if (!isRight) throw notPermitted({ anonymous: caller.role === settings.anonRole });
  return rows;
}

function toIntent(body: unknown, { target, collections, settings }: Asked, fixed: PayloadRules["fixed"]) {
  const { collection } = target;
  const rules = { collection, version: collections.version, maxRows: settings.maxPageSize, fixed };
  const payload = parsePayload(body, { ...rules, verb: "create", addressed: new Set() });
  return insertIntent(collection, { select: everyField(collection) }, payload);
}

/** `/users/7`, below the address that it was sent to. */
function locationOf(
  text: string,
  { target: { collection }, address, settings }: Asked,
): Readonly<Record<string, string>> {
  const row = parseExactly(text) as Row;
  const isShown = collection.key.every(({ name }) => row[name] !== undefined);
  const key = isShown ? formatKey(collection.key.map(({ name }) => textOfValue(row[name]))) : null;
  return key === null ? {} : { Location: `${publicPath(settings.publicUrl)}${address.canonical}/${key}` };
}
