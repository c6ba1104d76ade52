import type { ReplicatedRow, RowChange } from "../changes.ts";

/** A condition that each row meets which can change the result: the column has one of these values. */
export type EqualityFilter = {
  readonly relation: number;
  readonly column: string;
  readonly values: readonly string[];
  /** Whether the column has texts, which are equal only as bytes. */
  readonly isExact?: boolean;
};

const TEXTS: ReadonlySet<string> = new Set(["text", "varchar"]);
const COMPARABLE: ReadonlySet<string> = new Set(["int2", "int4", "int8", "uuid"]);
const INTEGER = /^[+-]?\d+$/;
const UUID = /^[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}$/i;

/** Whether neither the old nor the new row meets the filter. In doubt it is false. */
export function isExcluded(change: RowChange, filter: EqualityFilter): boolean {
  const texts = comparableTexts(change, filter);
  if (texts === null) return false;
  const wanted = textsOfFilter(filter);
  return wanted !== null && !texts.some((text) => wanted.includes(text));
}

/** The values of a filter as texts to compare; null if these do not tell whether they are equal. */
export function textsOfFilter({ values, isExact = false }: EqualityFilter): readonly string[] | null {
  const texts = isExact ? values : values.map(toComparableText);
  return texts.every((text) => text !== null) ? texts : null;
}

/** Equal for values of integers and of UUIDs that are equal, and only for those; null for other texts. */
function toComparableText(value: string): string | null {
  if (INTEGER.test(value)) return String(BigInt(value.replace(/^\+/, "")));
  return UUID.test(value) ? value.toLowerCase() : null;
}

/** The values of a column in the old and in the new row; null if they are not known, or their texts do not tell whether they are equal. */
export function comparableTexts(
  change: RowChange,
  { column, isExact = false }: Pick<EqualityFilter, "column" | "isExact">,
): readonly string[] | null {
  const { kind, relation } = change;
  if (kind === "TRUNCATE") return null;
  const at = relation.columns.findIndex(({ name }) => name === column);
  const found = relation.columns[at];
  const isComparable = isExact ? TEXTS : COMPARABLE;
  if (!found || !isComparable.has(found.typeName)) return null;
  const rows = completeRows(change, found.isIdentity);
  if (rows === null) return null;
  const texts: string[] = [];
  for (const row of rows) {
    const cell = row[at];
    if (cell === undefined) return null;
    if (cell !== null) texts.push(isExact ? cell : toComparableText(cell)!);
  }
  return texts;
}

/** Null if the log has not all values that the column had. */
function completeRows(change: RowChange, isIdentity: boolean): readonly ReplicatedRow[] | null {
  if (change.kind === "INSERT") return [change.new!];
  if (!isIdentity) return null;
  if (change.kind === "DELETE") return change.old ? [change.old] : null;
  // Without an old row in the log, no column of the identity has changed.
  return change.old ? [change.old, change.new!] : [change.new!];
}
