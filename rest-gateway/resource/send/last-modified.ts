import { oncePer } from "../../../engine/once-per.ts";
import type { Collection } from "../collections.ts";
import type { Field } from "../fields.ts";

/** When a row was last changed; null where that is not known well enough to be told. */
export type Modified = Date | null;

/** How long a change may be on its way before everybody sees it. */
const SETTLED_MS = 2_000;

/**
 * HTTP tells times in seconds, and a row may change twice in one. So a change is dated when no other can bear its second:
 * the first version of a row at once, a later one when it is some seconds old and was not made in the second of the first.
 */
export function lastModified(row: string, collection: Collection, now: Date): Modified {
  const names = namesOfTimes(collection);
  if (names === null) return null;
  const created = valueIn(row, names.created);
  const updated = valueIn(row, names.updated);
  const made = toSecond(created);
  if (made === null || updated === undefined) return null;
  // Microseconds are told apart by the text.
  if (updated === null || updated === created) return new Date(made);
  const changed = toSecond(updated);
  const isSettled = now.getTime() - Date.parse(String(updated)) > SETTLED_MS;
  return changed !== null && changed !== made && isSettled ? new Date(changed) : null;
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
export function changeOf(row: string, since: number, collection: Collection, now: Date): Change | null {
  const names = namesOfTimes(collection);
  if (names === null) return null;
  const modified = lastModified(row, collection, now);
  const at = valueIn(row, names.updated);
  return { isLater: modified === null || modified.getTime() > since, at: typeof at === "string" ? at : null };
}

export type Change = {
  readonly isLater: boolean;
  /** As Postgres wrote it; null for a row that is as it was made. */
  readonly at: string | null;
};

/** Under which names rows show when they were made and changed; null where they don't. */
const namesOfTimes = oncePer(({ fields }: Collection) => {
  const isTime = ({ readable, column }: Field) => readable && column.baseType.name === "timestamptz";
  const nameOf = (column: string) => fields.find((field) => field.column.name === column && isTime(field))?.name;
  const [created, updated] = [nameOf("created_at"), nameOf("updated_at")];
  return created === undefined || updated === undefined ? null : { created, updated };
});

/**
 * Of a row that holds no objects, whose members may be called the same, it is cut out: all of it is read in a multiple of
 * that time. Within a text or a name a quotation mark has a backslash before it.
 */
function valueIn(row: string, name: string): unknown {
  const head = `${JSON.stringify(name)}:"`;
  const at = row.indexOf(head);
  const isFlat = row.indexOf("{", 1) < 0;
  const isMember = at > 0 && row[at - 1] !== "\\";
  if (!isFlat || !isMember) return (JSON.parse(row) as Record<string, unknown>)[name];
  const start = at + head.length;
  return row.slice(start, row.indexOf('"', start));
}

/** When its second began; null where that is no time. */
function toSecond(value: unknown): number | null {
  const time = typeof value === "string" ? Date.parse(value) : Number.NaN;
  return Number.isNaN(time) ? null : Math.floor(time / 1000) * 1000;
}
