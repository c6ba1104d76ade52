import type { ReplicatedColumn, ReplicatedRelation, ReplicatedRow, RowChange } from "../stream/changes.ts";

/** A condition that each row meets which can change the result: the column has one of these values. */
export type EqualityFilter = {
  readonly relation: number;
  readonly column: string;
  readonly values: readonly string[];
  /** True if the column has texts, which are equal only as bytes. */
  readonly isExact?: boolean;
};
/** A condition like EqualityFilter: the column has a value from the least to the greatest, both included. Null: no bound. */
type RangeFilter = {
  readonly relation: number;
  readonly column: string;
  readonly least: string | null;
  readonly greatest: string | null;
};
export type ChangeFilter = EqualityFilter | RangeFilter;
/** A condition of a request. `reads`: how often the statement reads the relation, always with this condition; once by default. */
export type ReadFilter = ChangeFilter & { readonly reads?: number };
/** A condition like ChangeFilter, on a column of a relation that is known. */
export type ColumnBounds = Omit<EqualityFilter, "relation"> | Omit<RangeFilter, "relation">;

/** The keys of all rows of a relation that are in a result, as `keyText` writes them. A row that is not shown does not change it by leaving. */
export type ShownKeys = {
  readonly relation: number;
  readonly columns: readonly string[];
  readonly keys: ReadonlySet<string>;
};

/** The facts that the rows of a result tell about the changes that can affect it, until the result changes. */
export type ResultContents = {
  readonly filters: readonly ChangeFilter[];
  /** Conditions only on rows after their change: a row that does not meet them changes the result by leaving, not by arriving. */
  readonly arriving: readonly ChangeFilter[];
  readonly shown: readonly ShownKeys[];
};

/** True if the contents decide which changes of the relation affect their result. */
export function decidesOn(contents: ResultContents | null, relation: number): boolean {
  const isOf = (each: ChangeFilter | ShownKeys) => each.relation === relation;
  return (
    contents !== null && (contents.filters.some(isOf) || contents.arriving.some(isOf) || contents.shown.some(isOf))
  );
}

export function countKeys(contents: ResultContents | null): number {
  return contents?.shown.reduce((sum, { keys }) => sum + keys.size, 0) ?? 0;
}

export type FilteredResult = { readonly filters: readonly ChangeFilter[]; readonly contents: ResultContents | null };

/** The cells at these positions have one of these values, or a value in this range. */
export type CellCondition =
  | { readonly kind: "values"; readonly at: readonly number[]; readonly texts: ReadonlySet<string> }
  | {
      readonly kind: "range";
      readonly at: readonly [number];
      readonly least: OrderedValue;
      readonly greatest: OrderedValue;
    };
/** Integers beyond 2^53 are bigints; UUIDs have the order of their texts. Bounds that miss are beyond all values. */
type OrderedValue = number | bigint | string;

/** The conditions on the rows of a relation: on what is known of a row before its change, and on the row after it. */
export type RowConditions = { readonly before: readonly CellCondition[]; readonly after: readonly CellCondition[] };

const TEXTS: ReadonlySet<string> = new Set(["text", "varchar"]);
const COMPARABLE: ReadonlySet<string> = new Set(["int2", "int4", "int8", "uuid"]);
const BEYOND_INTEGERS = [-Infinity, Infinity] as const;
const BEYOND_UUIDS = ["", "g"] as const;
const INTEGER = /^[+-]?\d+$/;
const UUID = /^[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}$/i;

/** The text of a key; no value of Postgres has the character that separates its values. */
export function keyText(values: readonly string[]): string {
  return values.join("\0");
}

/** True if no row at all can meet a filter. */
export function isNeverAffected({ filters, contents }: FilteredResult, relation: number): boolean {
  return [...filters, ...(contents?.filters ?? [])].some(
    (filter) => filter.relation === relation && "values" in filter && filter.values.length === 0,
  );
}

/** Leaves out filters whose values cannot be told apart by their texts in the log. */
export function conditionsOf({ filters, contents }: FilteredResult, relation: ReplicatedRelation): RowConditions {
  const { oid, columns } = relation;
  const toConditions = (all: readonly ChangeFilter[]) =>
    mergeRanges(
      all.filter((filter) => filter.relation === oid).flatMap((filter) => toCondition(filter, columns) ?? []),
    );
  const always = [...filters, ...(contents?.filters ?? [])];
  const after = toConditions([...always, ...(contents?.arriving ?? [])]);
  const shown = contents?.shown.filter((each) => each.relation === oid) ?? [];
  const keys = shown.flatMap((each) => toKeyCondition(each, columns) ?? []);
  // Rows that are shown meet the other conditions. The log has only the identity columns of a row before its change.
  if (keys.length > 0) return { before: keys, after };
  const before = toConditions(always).filter(({ at }) => at.every((each) => columns[each]!.isIdentity));
  return { before, after };
}

/** True if the change may affect a result; also true in doubt. */
export function isAffected(change: RowChange, { before, after }: RowConditions): boolean {
  const { kind, old, new: row } = change;
  if (kind === "TRUNCATE") return true;
  return (
    (kind !== "INSERT" && meetsAll(rowBefore(change), before)) || (kind !== "DELETE" && meetsAll(row ?? old!, after))
  );
}

/** If the log has no old row, no column of the identity has changed. */
export function rowBefore({ old, new: row }: RowChange): ReplicatedRow {
  return old ?? row ?? [];
}

/** Values that are not known are taken to meet the conditions. */
export function meetsAll(row: ReplicatedRow, conditions: readonly CellCondition[]): boolean {
  return conditions.every((condition) => {
    if (condition.kind === "range") return isWithin(row[condition.at[0]], condition);
    const text = textOfCells(row, condition.at);
    return text === undefined || (text !== null && condition.texts.has(text));
  });
}

/** Null if one is null, undefined if one is not known. */
export function textOfCells(row: ReplicatedRow, at: readonly number[]): string | null | undefined {
  const [first] = at;
  if (at.length === 1) return row[first!];
  const cells = at.map((each) => row[each]);
  if (cells.includes(undefined)) return undefined;
  return cells.includes(null) ? null : keyText(cells as string[]);
}

function isWithin(
  cell: string | null | undefined,
  { least, greatest }: Extract<CellCondition, { kind: "range" }>,
): boolean {
  if (cell === undefined) return true;
  const value = cell === null ? null : toOrderedValue(cell);
  return value !== null && least <= value && value <= greatest;
}

/** Null for other texts than those of integers and UUIDs. */
export function toOrderedValue(text: string): OrderedValue | null {
  if (UUID.test(text)) return text.toLowerCase();
  if (!INTEGER.test(text)) return null;
  const value = Number(text);
  return Number.isSafeInteger(value) ? value : BigInt(text.replace(/^\+/, ""));
}

function toCondition(filter: ChangeFilter, columns: readonly ReplicatedColumn[]): CellCondition | null {
  const at = columns.findIndex(({ name }) => name === filter.column);
  const isExact = "values" in filter && filter.isExact === true;
  if (at < 0 || !(isExact ? TEXTS : COMPARABLE).has(columns[at]!.typeName)) return null;
  const isUuid = columns[at]!.typeName === "uuid";
  if ("values" in filter) {
    const texts = isExact ? filter.values : filter.values.map((value) => toComparableText(value, isUuid));
    return texts.every((text) => text !== null) ? { kind: "values", at: [at], texts: new Set(texts) } : null;
  }
  const [lowest, highest] = isUuid ? BEYOND_UUIDS : BEYOND_INTEGERS;
  const least = filter.least === null ? lowest : toBound(filter.least, isUuid);
  const greatest = filter.greatest === null ? highest : toBound(filter.greatest, isUuid);
  return least === null || greatest === null ? null : { kind: "range", at: [at], least, greatest };
}

/** Null for a text that does not tell. */
function toBound(bound: string, isUuid: boolean): OrderedValue | null {
  return toComparableText(bound, isUuid) === null ? null : toOrderedValue(bound);
}

/** Two ranges of one column are one. */
function mergeRanges(conditions: readonly CellCondition[]): CellCondition[] {
  const merged: CellCondition[] = [];
  for (const condition of conditions) {
    const at = merged.findIndex(({ kind, at: [first] }) => kind === "range" && first === condition.at[0]);
    const same = merged[at];
    if (condition.kind === "range" && same?.kind === "range") {
      const least = same.least < condition.least ? condition.least : same.least;
      const greatest = same.greatest > condition.greatest ? condition.greatest : same.greatest;
      merged[at] = { ...same, least, greatest };
    } else merged.push(condition);
  }
  return merged;
}

/** The text that the log has for the value; null for other texts. */
function toComparableText(value: string, isUuid: boolean): string | null {
  if (isUuid) return UUID.test(value) ? value.toLowerCase() : null;
  return INTEGER.test(value) ? String(BigInt(value.replace(/^\+/, ""))) : null;
}

/** Null unless all columns are in the replica identity, with values that have the same text in JSON and in the log. */
function toKeyCondition(
  { columns: names, keys }: ShownKeys,
  columns: readonly ReplicatedColumn[],
): CellCondition | null {
  const at = names.map((name) => columns.findIndex((column) => column.name === name));
  const isKnown = at.every((each) => {
    const column = columns[each];
    return column?.isIdentity && (COMPARABLE.has(column.typeName) || TEXTS.has(column.typeName));
  });
  return isKnown ? { kind: "values", at, texts: keys } : null;
}
