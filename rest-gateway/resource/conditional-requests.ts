import { hash } from "node:crypto";
import type { IncomingHttpHeaders } from "node:http";
import { memoizePerObject } from "../../engine/cache/memoize.ts";
import type { RowCondition } from "../../engine/statement/intent.ts";
import type { Collection } from "./collections.ts";
import type { CollectionField } from "./fields.ts";

/** How long a change may be on its way before everybody sees it. */
const SETTLED_MS = 2_000;

/** Where rows show when they were made and changed; null where they don't. */
const timeMembersOf = memoizePerObject(({ fields }: Collection) => {
  const isTime = ({ readable, column }: CollectionField) => readable && column.baseType.name === "timestamptz";
  const memberOf = (column: string): TimeMember | null => {
    const name = fields.find((field) => field.column.name === column && isTime(field))?.name;
    return name === undefined ? null : { name, head: `${JSON.stringify(name)}:"` };
  };
  const [created, updated] = [memberOf("created_at"), memberOf("updated_at")];
  return created && updated && { created, updated };
});

/** What a client knows of the row, and whether it is to be so or not to be so. */
type Precondition = {
  readonly negated: boolean;
  /** `*`: whatever there is. */
  readonly any: boolean;
  readonly digests: readonly string[];
};

/** Our own ETag is a digest of the row, and one of what is shown besides where there is more. */
const TAG = /(?<weak>W\/)?"(?<digest>[^".]*)[^"]*"/g;

/** What has to hold before something is written. */
export function parsePreconditions(headers: IncomingHttpHeaders): readonly Precondition[] {
  return [
    ...(headers["if-match"] === undefined ? [] : [parseTags(headers["if-match"], false)]),
    ...(headers["if-none-match"] === undefined ? [] : [parseTags(headers["if-none-match"], true)]),
  ];
}

/** A row that is there meets `If-Match: *` by that. */
export function conditionOf({ negated, any, digests }: Precondition): RowCondition {
  if (any) return { kind: "row", negated: !negated, operation: { kind: "digest", values: [] } };
  return { kind: "row", negated, operation: { kind: "digest", values: digests } };
}

export function isMet({ negated, any, digests }: Precondition, digest: string): boolean {
  return (any || digests.includes(digest)) !== negated;
}

function parseTags(header: string, negated: boolean): Precondition {
  if (header.trim() === "*") return { negated, any: true, digests: [] };
  // A weak tag is never enough to write by.
  const strong = [...header.matchAll(TAG)].filter(({ groups }) => negated || groups!.weak === undefined);
  return { negated, any: false, digests: strong.map(({ groups }) => groups!.digest!) };
}

/** What Postgres computes of a row as well, to compare it with when something is written. */
export function digestOf(text: string): string {
  return hash("sha256", text, "hex");
}

/** Strong: of the row, and of the whole body where that shows more than the row. */
export function entityTag(row: string, body: string): string {
  return row === body ? `"${digestOf(row)}"` : `"${digestOf(row)}.${digestOf(body)}"`;
}

/** `If-None-Match`: any of the tags, weak ones included, for a GET asks for nothing more. */
export function matchesTag(header: string | undefined, tag: string): boolean {
  if (header === undefined) return false;
  return header.trim() === "*" || [...header.matchAll(/(?:W\/)?("[^"]*")/g)].some(([, known]) => known === tag);
}

/** When a row was last changed; null where that is not known well enough to be told. */
type ModificationTime = Date | null;

/**
 * HTTP tells times in seconds, and a row may change twice in one. So a change is dated when no other can bear its second:
 * the first version of a row at once, a later one when it is some seconds old and of a later second than the first. (It is
 * of an earlier one where a transaction that had begun before the row was made has changed it.)
 */
export function lastModified(row: string, collection: Collection, now: number): ModificationTime {
  const times = timeMembersOf(collection);
  if (times === null) return null;
  const created = readMemberText(row, times.created);
  const updated = readMemberText(row, times.updated);
  const made = secondOf(timeOf(created));
  if (Number.isNaN(made) || updated === undefined) return null;
  // Microseconds are told apart by the text.
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

/** `If-Unmodified-Since` of a write: what might be another row by now is taken for one. Null where rows have no dates. */
export function findRowChange(row: string, since: number, collection: Collection, now: number): TimestampChange | null {
  const times = timeMembersOf(collection);
  if (times === null) return null;
  const modified = lastModified(row, collection, now);
  const at = readMemberText(row, times.updated);
  return { isLater: modified === null || modified.getTime() > since, at: typeof at === "string" ? at : null };
}

type TimestampChange = {
  readonly isLater: boolean;
  /** As Postgres wrote it; null for a row that is as it was made. */
  readonly at: string | null;
};

/** A column as it stands in the text of a row. */
type TimeMember = { readonly name: string; readonly head: string };

/**
 * Of a row that holds no objects, whose members may be called the same, it is cut out: all of it is read in a multiple of
 * that time. Within a text or a name a quotation mark has a backslash before it.
 */
function readMemberText(row: string, { name, head }: TimeMember): unknown {
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
