import type { Collection } from "../collections.ts";

/** When a row was last changed; null where that is not known well enough to be told. */
export type Modified = Date | null;

/** How long a change may be on its way before everybody sees it. */
const SETTLED_MS = 2_000;

/**
 * HTTP tells times in seconds, and a row may change twice in one. So a change is dated when no other can bear its second:
 * the first version of a row at once, a later one when it is some seconds old and was not made in the second of the first.
 */
export function lastModified(row: Readonly<Record<string, unknown>>, { fields }: Collection, now: Date): Modified {
  const timeOf = (column: string) => {
    const field = fields.find((each) => each.column.name === column && each.column.baseType.name === "timestamptz");
    return field ? readTime(row[field.name]) : undefined;
  };
  const [created, updated] = [timeOf("created_at"), timeOf("updated_at")];
  if (!created || updated === undefined) return null;
  if (updated === null || updated.text === created.text) return inSeconds(created.time);
  const isApart = inSeconds(updated.time).getTime() !== inSeconds(created.time).getTime();
  const isSettled = now.getTime() - updated.time.getTime() > SETTLED_MS;
  return isApart && isSettled ? inSeconds(updated.time) : null;
}

export function isUnmodified(since: string | undefined, modified: Modified): boolean {
  if (since === undefined || modified === null) return false;
  const known = Date.parse(since);
  return !Number.isNaN(known) && modified.getTime() <= known;
}

/** Microseconds are told apart by the text. Undefined: it is not shown. */
function readTime(value: unknown): { readonly text: string; readonly time: Date } | null | undefined {
  if (value === null || value === undefined) return value;
  const time = new Date(String(value));
  return Number.isNaN(time.getTime()) ? undefined : { text: String(value), time };
}

function inSeconds(time: Date): Date {
  return new Date(Math.floor(time.getTime() / 1000) * 1000);
}
