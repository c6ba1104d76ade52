import { quoteField, quoteValue } from "../../api/field-names.ts";
import type { QueryParameter } from "../../api/rest-query.ts";

export type SortTerm = {
  readonly column: string;
  readonly descending: boolean;
};

/** A term of a complete order, with the position of nulls, and whether there can be any. */
export type OrderTerm = SortTerm & {
  readonly nullsFirst: boolean;
  readonly nullable: boolean;
};

/** The values of the order's columns in one row, as texts. */
export type RowPosition = readonly (string | null)[];

/** The maximum length of a value that fits into a URL beside the others. */
const MAX_VALUE_LENGTH = 1_500;

/** Returns an order that distinguishes all rows: the user's sorting, completed by the key. Nulls are in Postgres's default position. */
export function completeOrder(
  sort: readonly SortTerm[],
  key: readonly string[],
  isNullable: (column: string) => boolean,
): OrderTerm[] {
  const descending = sort.at(-1)?.descending ?? false;
  const sorted = new Set(sort.map(({ column }) => column));
  const rest = key.filter((column) => !sorted.has(column)).map((column) => ({ column, descending }));
  return [...sort, ...rest].map((term) => ({
    ...term,
    nullsFirst: term.descending,
    nullable: isNullable(term.column),
  }));
}

export function reverseOrder(order: readonly OrderTerm[]): OrderTerm[] {
  return order.map((term) => ({ ...term, descending: !term.descending, nullsFirst: !term.nullsFirst }));
}

/** Returns the value of the parameter `order`. */
export function formatOrder(order: readonly OrderTerm[]): string {
  return order.map(formatTerm).join(",");
}

function formatTerm({ column, descending, nullsFirst, nullable }: OrderTerm): string {
  const direction = descending ? ".desc" : ".asc";
  // An index serves the order only if nulls are where the index has them, by default.
  const nulls = nullable && nullsFirst !== descending ? (nullsFirst ? ".nullsfirst" : ".nullslast") : "";
  return quoteField(column) + direction + nulls;
}

/** True if filters can name the position: its values must fit into a URL. */
export function isAddressable(position: RowPosition): boolean {
  return position.every((value) => value === null || value.length <= MAX_VALUE_LENGTH);
}

/**
 * The filters that select the rows after a position, as queries to be run one after the other until there are enough rows:
 * the rows where the first column is null, and those where it is not, are separate queries, so that each can use an index.
 */
export function filtersAfter(order: readonly OrderTerm[], position: RowPosition): QueryParameter[][] {
  const [first, ...rest] = order;
  if (first === undefined) return [];
  const field = quoteField(first.column);
  const [value, ...others] = position;
  if (value == null) {
    const later = conditionAfter(rest, others);
    const amongNulls: QueryParameter[][] = later === null ? [] : [[[field, "is.null"], later]];
    return first.nullsFirst ? [...amongNulls, [[field, "not.is.null"]]] : amongNulls;
  }
  const later = conditionAfter([{ ...first, nullable: false }, ...rest], position)!;
  // The condition implies the bound, but only the bound is a range of an index.
  const bound: QueryParameter = [field, `${first.descending ? "lte" : "gte"}.${value}`];
  const amongValues = rest.length > 0 ? [bound, later] : [later];
  return first.nullable && !first.nullsFirst ? [amongValues, [[field, "is.null"]]] : [amongValues];
}

/** Selects the row at the position. */
export function filterAt(order: readonly OrderTerm[], position: RowPosition): QueryParameter {
  return ["and", `(${order.map((term, index) => formatEquality(term, position[index]!)).join(",")})`];
}

/** Returns null if no row comes after the position. */
function conditionAfter(order: readonly OrderTerm[], position: RowPosition): QueryParameter | null {
  const alternatives = order.flatMap((term, index) => {
    const later = comparisonAfter(term, position[index]!);
    if (later === null) return [];
    const equal = order.slice(0, index).map((other, at) => formatEquality(other, position[at]!));
    return equal.length === 0 ? [later] : [`and(${[...equal, later].join(",")})`];
  });
  return alternatives.length === 0 ? null : ["or", `(${alternatives.join(",")})`];
}

function formatEquality({ column }: OrderTerm, value: string | null): string {
  const field = quoteField(column);
  return value === null ? `${field}.is.null` : `${field}.eq.${quoteValue(value)}`;
}

/** Returns null if no value comes after this one. */
function comparisonAfter(term: OrderTerm, value: string | null): string | null {
  const field = quoteField(term.column);
  if (value === null) return term.nullsFirst ? `${field}.not.is.null` : null;
  const later = `${field}.${term.descending ? "lt" : "gt"}.${quoteValue(value)}`;
  return term.nullable && !term.nullsFirst ? `or(${later},${field}.is.null)` : later;
}
