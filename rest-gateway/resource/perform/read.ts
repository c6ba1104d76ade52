import type { GatewayResponse } from "../../http.ts";
import type { Asked, AskRows } from "../asked.ts";
import { isRow, liesWithin } from "../belonging.ts";
import { readIntent } from "../intents.ts";
import { listParameters } from "../parse/latest-lists.ts";
import { windowOf } from "../parse/paging.ts";
import { parseRowParameters } from "../parse/parameters.ts";
import { everyField } from "../parse/selected-fields.ts";
import { noRow, severalRows } from "../refusals.ts";
import { withLinks } from "../send/links.ts";
import { sendList } from "../send/list.ts";
import { sendRow } from "../send/row.ts";
import { readParent } from "./parents.ts";

export async function readList(asked: Asked, ask: AskRows): Promise<GatewayResponse> {
  const { collection, nested, parents } = asked.target;
  const parameters = listParameters(asked);
  const { select, conditions, order, paging, links } = parameters;
  const wish = {
    select,
    conditions: [...liesWithin(nested, parents), ...conditions],
    order,
    window: windowOf(paging),
  };
  const count = paging.kind === "plain" ? null : "exact";
  const rows = await ask(readIntent(collection, wish, count), parents.length === 0 ? parameters : undefined);
  // Where there are rows, there is what they lie within.
  if (rows.count === 0) await readParent(asked, ask);
  const isLinked = links || asked.agreed.links;
  const data = isLinked ? await withLinks(rows.text, collection, asked, ask) : rows.text;
  return sendList(asked, { data, total: rows.total, paging });
}

export async function readRow(asked: Asked, ask: AskRows): Promise<GatewayResponse> {
  const { collection, key, nested, parents } = asked.target;
  const { select, links } = parseRowParameters(asked.parameters, about(asked));
  const conditions = isRow({ collection, key: key!, nested }, parents);
  const isPlain = parents.length === 0 && select === everyField(collection);
  const rows = await ask(readIntent(collection, { select, conditions }), isPlain ? select : undefined);
  if (rows.count === 0) throw noRow(collection);
  if (rows.count > 1) throw severalRows();
  const text = rowOf(rows.text);
  const linked = links || asked.agreed.links ? await withLinks(text, collection, asked, ask) : null;
  return sendRow(asked, { status: 200, text, collection, select, linked });
}

/** The one row of an array, as it stands there. */
export function rowOf(array: string): string {
  return array.slice(1, -1);
}

export function about({ target: { collection }, collections }: Asked) {
  return { collection, collections };
}
