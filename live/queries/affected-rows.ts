import type { ReplicatedRow, RowChange } from "../changes.ts";

/** A condition of a query that each of its rows meets: the column has one of these values. */
export type EqualityFilter = {
  readonly relation: number;
  readonly column: string;
  readonly values: readonly string[];
};

const INTEGERS: ReadonlySet<string> = new Set(["int2", "int4", "int8"]);
const INTEGER = /^[+-]?\d+$/;
const UUID = /^[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}$/i;

/** Whether neither the old nor the new row meets the filter. In doubt it is false. */
export function isExcluded(change: RowChange, { column, values }: EqualityFilter): boolean {
  const { kind, relation } = change;
  if (kind === "TRUNCATE") return false;
  const at = relation.columns.findIndex(({ name }) => name === column);
  const found = relation.columns[at];
  if (!found) return false;
  const wanted = values.map((value) => comparableText(value, found.typeName));
  if (wanted.includes(null)) return false;
  const misses = (row: ReplicatedRow | null): boolean => {
    const cell = row?.[at];
    if (cell === undefined) return false;
    return cell === null || !wanted.includes(comparableText(cell, found.typeName));
  };
  if (kind === "INSERT") return misses(change.new);
  if (kind === "DELETE") return found.isIdentity && misses(change.old);
  // Without an old row in the log, no column of the identity has changed.
  if (change.old === null) return found.isIdentity && misses(change.new);
  return found.isIdentity && misses(change.old) && misses(change.new);
}

/** Equal for values that are equal, and only for those; null for types where the text does not tell. */
function comparableText(value: string, type: string): string | null {
  if (INTEGERS.has(type)) return INTEGER.test(value) ? String(BigInt(value.replace(/^\+/, ""))) : null;
  if (type === "uuid") return UUID.test(value) ? value.toLowerCase() : null;
  return null;
}
