import { oncePer } from "../../../engine/once-per.ts";
import type { Collection } from "../collections.ts";
import type { Field } from "../fields.ts";

/** When a row was last changed; null where that is not known well enough to be told. */
export type Modified = Date | null;

/** How long a change may be on its way before everybody sees it. */
const SETTLED_MS = 2_000;

/**
 * HTTP tells times in seconds, and a row may change twice in one. So a change is dated when no other can bear its second:
 * the first version of a row at once, a later one when it is some seconds old and of a later second than the first. (It is
 * of an earlier one where a transaction that had begun before the row was made has changed it.)
 */
export function lastModified(row: string, collection: Collection, now: number): Modified {
  const times = timesOf(collection);
  if (times === null) return null;
  const created = valueIn(row, times.created);
  const updated = valueIn(row, times.updated);
  const made = secondOf(timeOf(created));
  if (Number.isNaN(made) || updated === undefined) return null;
  // Microseconds are told apart by the text.
  if (updated === null || updated === created) return new Date(made);
  const changed = timeOf(updated);
  const isSettled = now - changed > SETTLED_MS;
  return isSettled && secondOf(changed) > made ? new Date(secondOf(changed)) : null;
}

export function isUnmodified(since: string | undefined, modified: Modified): boolean {
  if (since === undefined || modified === null) return false;
  const known = Date.parse(since);
  return !Number.isNaN(known) && modified.getTime() <= known;
}

export function isModified(since: string | undefined, modified: Modified): boolean {
  return since !== undefined && modified !== null && modified.getTime() > Date.parse(since);
}

/** `If-Unmodified-Since` of a write: what might be another row by now is taken for one. Null where rows have no dates. */
export function changeOf(row: string, since: number, collection: Collection, now: number): Change | null {
  const times = timesOf(collection);
  if (times === null) return null;
  const modified = lastModified(row, collection, now);
  const at = valueIn(row, times.updated);
  return { isLater: modified === null || modified.getTime() > since, at: typeof at === "string" ? at : null };
}

export type Change = {
  readonly isLater: boolean;
  /** As Postgres wrote it; null for a row that is as it was made. */
  readonly at: string | null;
};

/** A column as it stands in the text of a row. */
type Member = { readonly name: string; readonly head: string };

/** Where rows show when they were made and changed; null where they don't. */
const timesOf = oncePer(({ fields }: Collection) => {
  const isTime = ({ readable, column }: Field) => readable && column.baseType.name === "timestamptz";
  const memberOf = (column: string): Member | null => {
    const name = fields.find((field) => field.column.name === column && isTime(field))?.name;
    return name === undefined ? null : { name, head: `${JSON.stringify(name)}:"` };
  };
  const [created, updated] = [memberOf("created_at"), memberOf("updated_at")];
  return created && updated && { created, updated };
});

/**
 * Of a row that holds no objects, whose members may be called the same, it is cut out: all of it is read in a multiple of
 * that time. Within a text or a name a quotation mark has a backslash before it.
 */
function valueIn(row: string, { name, head }: Member): unknown {
  const at = row.indexOf(head);
  const isFlat = row.indexOf("{", 1) < 0;
  const isMember = at > 0 && row[at - 1] !== "\\";
  if (!isFlat || !isMember) return (JSON.parse(row) as Record<string, unknown>)[name];
  const start = at + head.length;
  return row.slice(start, row.indexOf('"', start));
}

/** NaN where that is no time. */
function timeOf(value: unknown): number {
  return typeof value === "string" ? Date.parse(value) : Number.NaN;
}

function secondOf(time: number): number {
  return Math.floor(time / 1000) * 1000;
}
