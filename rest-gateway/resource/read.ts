import { parseJsonExactly, toAddressText } from "../../engine/json/json-values.ts";
import type { SelectItem } from "../../engine/statement/intent.ts";
import type { GatewayResponse } from "../http/response.ts";
import { ambiguousRow, rowNotFound } from "./errors.ts";
import { makeReadIntent, parentConditions, rowConditions } from "./intents.ts";
import { selectEveryField } from "./parse/fields.ts";
import { windowOf } from "./parse/paging.ts";
import { cachedListParameters, parseRowParameters } from "./parse/parameters.ts";
import type { ResourceRequest, RunIntent } from "./request.ts";
import { withLinks } from "./respond/links.ts";
import { respondWithList, respondWithRow } from "./respond/respond.ts";

export async function readList(parsed: ResourceRequest, run: RunIntent): Promise<GatewayResponse> {
  const { collection, nested, parents } = parsed.target;
  const parameters = cachedListParameters(parsed);
  const { select, conditions, order, paging, links } = parameters;
  const query = {
    select,
    conditions: [...parentConditions(nested, parents), ...conditions],
    order,
    window: windowOf(paging),
  };
  const count = paging.kind === "plain" ? null : "exact";
  const rows = await run(makeReadIntent(collection, query, count), parents.length === 0 ? parameters : undefined);
  // Where there are rows, there is what they lie within.
  if (rows.count === 0) await readParent(parsed, run);
  const isLinked = links || parsed.negotiated.links;
  const data = isLinked ? await withLinks(rows.text, collection, parsed, run) : rows.text;
  return respondWithList(parsed, { data, total: rows.total, paging });
}

export async function readRow(parsed: ResourceRequest, run: RunIntent): Promise<GatewayResponse> {
  const { collection, key, nested, parents } = parsed.target;
  const { select, links } = parseRowParameters(parsed.parameters, parameterContext(parsed));
  const conditions = rowConditions({ collection, key: key!, nested }, parents);
  const isPlain = parents.length === 0 && select === selectEveryField(collection);
  const rows = await run(makeReadIntent(collection, { select, conditions }), isPlain ? select : undefined);
  if (rows.count === 0) throw rowNotFound(collection);
  if (rows.count > 1) throw ambiguousRow();
  const text = onlyRow(rows.text);
  const linked = links || parsed.negotiated.links ? await withLinks(text, collection, parsed, run) : null;
  return respondWithRow(parsed, { status: 200, text, collection, select, linked });
}

/** The one row of an array, as it stands there. */
export function onlyRow(array: string): string {
  return array.slice(1, -1);
}

export function parameterContext({ target: { collection }, collections }: ResourceRequest) {
  return { collection, collections };
}

/**
 * The row that others lie within: what they refer to it by, under the names of their own columns. Refuses when it is not
 * there, or not where the address says.
 */
export async function readParent({ target }: ResourceRequest, run: RunIntent): Promise<ReadonlyMap<string, string>> {
  const { parents, nested } = target;
  const parent = parents.at(-1);
  if (!parent || !nested) return new Map();
  const { columns } = nested.relationship;
  const conditions = rowConditions(parent, parents.slice(0, -1));
  const { text } = await run(makeReadIntent(parent.collection, { select: columns.map(toSelectedColumn), conditions }));
  const [row] = parseJsonExactly(text) as Readonly<Record<string, unknown>>[];
  if (!row) throw rowNotFound(parent.collection);
  return new Map(columns.map(({ source, target }) => [target, toAddressText(row[source])]));
}

function toSelectedColumn({ source }: { readonly source: string }): SelectItem {
  return { kind: "column", field: { name: source, path: [] }, alias: null, cast: null, aggregate: null };
}
