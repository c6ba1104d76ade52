import { digestOf, type Precondition } from "#http";
import type { RowCondition } from "#planner/intent";
import { memoizePerObject } from "#runtime";
import type { Collection } from "./collections/collections.ts";
import type { CollectionField } from "./collections/fields.ts";

/** The time that a committed change may take to become visible to everybody. */
const SETTLED_MS = 2_000;

/** Returns the columns with the times of creation and update; null if the role cannot read both. */
const timeMembersOf = memoizePerObject(({ fields }: Collection) => {
  const isTime = ({ readable, column }: CollectionField) => readable && column.baseType.name === "timestamptz";
  const memberOf = (column: string): TimeMember | null => {
    const name = fields.find((field) => field.column.name === column && isTime(field))?.name;
    return name === undefined ? null : { name, head: `${JSON.stringify(name)}:"` };
  };
  const [created, updated] = [memberOf("created_at"), memberOf("updated_at")];
  return created && updated && { created, updated };
});

/** Converts a precondition to a condition of the row. An existing row meets `If-Match: *`. */
export function conditionOf({ negated, any, digests }: Precondition): RowCondition {
  if (any) return { kind: "row", negated: !negated, operation: { kind: "digest", values: [] } };
  return { kind: "row", negated, operation: { kind: "digest", values: digests } };
}

/** Returns a strong tag of the row, and of the whole body too if that has more than the row. */
export function entityTag(row: string, body: string): string {
  return row === body ? `"${digestOf(row)}"` : `"${digestOf(row)}.${digestOf(body)}"`;
}

/** The time of the last change of a row; null if it is not certain. */
type ModificationTime = Date | null;

/**
 * Returns the time of the last change as an HTTP date, which has seconds, while a row may change twice in one. So a date is given
 * only if no other version can have the same second: to the first version at once, to a later one when it is some seconds old and in
 * a later second than the first. (It is in an earlier one if a transaction that began before the insert has updated the row.)
 */
export function lastModified(row: string, collection: Collection, now: number): ModificationTime {
  const times = timeMembersOf(collection);
  if (times === null) return null;
  const created = readMemberText(row, times.created);
  const updated = readMemberText(row, times.updated);
  const made = secondOf(timeOf(created));
  if (Number.isNaN(made) || updated === undefined) return null;
  // The texts differ in microseconds too.
  if (updated === null || updated === created) return new Date(made);
  const changed = timeOf(updated);
  const isSettled = now - changed > SETTLED_MS;
  return isSettled && secondOf(changed) > made ? new Date(secondOf(changed)) : null;
}

export function isUnmodified(since: string | undefined, modified: ModificationTime): boolean {
  if (since === undefined || modified === null) return false;
  const known = Date.parse(since);
  return !Number.isNaN(known) && modified.getTime() <= known;
}

export function isModified(since: string | undefined, modified: ModificationTime): boolean {
  return since !== undefined && modified !== null && modified.getTime() > Date.parse(since);
}

/** Checks `If-Unmodified-Since` of a write: a row without a certain date counts as later. Null for rows without timestamps. */
export function findRowChange(row: string, since: number, collection: Collection, now: number): TimestampChange | null {
  const times = timeMembersOf(collection);
  if (times === null) return null;
  const modified = lastModified(row, collection, now);
  const at = readMemberText(row, times.updated);
  return { isLater: modified === null || modified.getTime() > since, at: typeof at === "string" ? at : null };
}

type TimestampChange = {
  readonly isLater: boolean;
  /** The update time as Postgres printed it; null for a row that was never updated. */
  readonly at: string | null;
};

/** A member of the JSON text of a row. */
type TimeMember = { readonly name: string; readonly head: string };

/**
 * Cuts the value out of the text of a flat row, whose member names are unique: parsing all of it takes a multiple of
 * the time. Inside a string, a quotation mark has a backslash before it.
 */
function readMemberText(row: string, { name, head }: TimeMember): unknown {
  const at = row.indexOf(head);
  const isFlat = row.indexOf("{", 1) < 0;
  const isMember = at > 0 && row[at - 1] !== "\\";
  if (!isFlat || !isMember) return (JSON.parse(row) as Record<string, unknown>)[name];
  const start = at + head.length;
  return row.slice(start, row.indexOf('"', start));
}

/** Parses a time; NaN if the value is none. */
function timeOf(value: unknown): number {
  return typeof value === "string" ? Date.parse(value) : Number.NaN;
}

function secondOf(time: number): number {
  return Math.floor(time / 1000) * 1000;
}
