import type { Condition } from "../../statement/intent.ts";
import type { Asked, AskRows } from "../asked.ts";
import { equals, isRow } from "../belonging.ts";
import { readIntent } from "../intents.ts";
import { everyField } from "../parse/selected-fields.ts";
import { preconditionFailed } from "../refusals.ts";
import { changeOf } from "../send/last-modified.ts";
import { rowOf } from "./read.ts";

/**
 * `If-Unmodified-Since`, of who shows no tag (RFC 9110, 13.1.4). Refuses when the row is a later one; else it has to be
 * the one that was looked at here when something is written.
 */
export async function stillUnmodified({ request, target }: Asked, ask: AskRows): Promise<readonly Condition[]> {
  const { "if-unmodified-since": date, "if-match": tag } = request.headers;
  const since = Date.parse(date ?? "");
  if (Number.isNaN(since) || tag !== undefined) return [];
  const { collection, key, nested, parents } = target;
  const conditions = isRow({ collection, key: key!, nested }, parents);
  const { text, count } = await ask(readIntent(collection, { select: everyField(collection), conditions }));
  const change = count === 0 ? null : changeOf(rowOf(text), since, collection, Date.now());
  if (change === null) return [];
  if (change.isLater) throw preconditionFailed();
  return [change.at === null ? isNull(UPDATED) : equals(UPDATED, change.at)];
}

const UPDATED = "updated_at";

function isNull(name: string): Condition {
  return { kind: "filter", field: { name, path: [] }, negated: false, operation: { kind: "is", value: "null" } };
}
