import { parseExactly, textOfValue } from "../../../engine/exact-json.ts";
import type { SelectItem } from "../../statement/intent.ts";
import type { Asked, AskRows } from "../asked.ts";
import { isRow } from "../belonging.ts";
import { readIntent } from "../intents.ts";
import { noRow } from "../refusals.ts";

/**
 * The row that others lie within: what they refer to it by, under the names of their own columns. Refuses when it is not
 * there, or not where the address says.
 */
export async function readParent({ target }: Asked, ask: AskRows): Promise<ReadonlyMap<string, string>> {
  const { parents, nested } = target;
  const parent = parents.at(-1);
  if (!parent || !nested) return new Map();
  const { columns } = nested.relationship;
  const conditions = isRow(parent, parents.slice(0, -1));
  const { text } = await ask(readIntent(parent.collection, { select: columns.map(toColumn), conditions }));
  const [row] = parseExactly(text) as Readonly<Record<string, unknown>>[];
  if (!row) throw noRow(parent.collection);
  return new Map(columns.map(({ source, target }) => [target, textOfValue(row[source])]));
}

function toColumn({ source }: { readonly source: string }): SelectItem {
  return { kind: "column", field: { name: source, path: [] }, alias: null, cast: null, aggregate: null };
}
