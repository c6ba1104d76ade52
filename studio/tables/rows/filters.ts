import { quoteField } from "../../api/field-names.ts";
import { formatQuery, type QueryParameter } from "../../api/rest-query.ts";
import type { SortTerm } from "./keyset.ts";

/** A condition on a column, or on the value at a JSON path in it. */
export type RowFilter = {
  readonly column: string;
  /** The path, such as `->address->>city`; empty for the column itself. */
  readonly path: string;
  readonly operator: FilterOperator;
  readonly value: string;
};

/** The kind of column, which determines its operators. */
export type FilterKind = keyof typeof OPERATORS_BY_KIND;

/** The texts before and after the value in the query string; the first match determines the operator. */
const AFFIXES = {
  isNull: ["is.null", null],
  notNull: ["not.is.null", null],
  isTrue: ["is.true", null],
  isFalse: ["is.false", null],
  contains: ["ilike.*", "*"],
  startsWith: ["ilike.", "*"],
  notIn: ["not.in.(", ")"],
  in: ["in.(", ")"],
  eq: ["eq.", ""],
  neq: ["neq.", ""],
  gte: ["gte.", ""],
  gt: ["gt.", ""],
  lte: ["lte.", ""],
  lt: ["lt.", ""],
  like: ["like.", ""],
  ilike: ["ilike.", ""],
  match: ["match.", ""],
  imatch: ["imatch.", ""],
  cs: ["cs.", ""],
  cd: ["cd.", ""],
  ov: ["ov.", ""],
  sl: ["sl.", ""],
  sr: ["sr.", ""],
  nxr: ["nxr.", ""],
  nxl: ["nxl.", ""],
  adj: ["adj.", ""],
  wfts: ["wfts.", ""],
  plfts: ["plfts.", ""],
  phfts: ["phfts.", ""],
  fts: ["fts.", ""],
  isDistinct: ["isdistinct.", ""],
  /** Any other condition of the table interface; its operator is in the value: `not.eq.5`. */
  other: ["", ""],
} as const satisfies Record<string, readonly [before: string, after: string | null]>;

export type FilterOperator = keyof typeof AFFIXES;

const NULLS = ["isNull", "notNull"] as const;
const COMPARISONS = ["eq", "neq", "gt", "gte", "lt", "lte"] as const;
const LISTS = ["in", "notIn"] as const;
const PATTERNS = ["contains", "startsWith", "eq", "neq", "like", "ilike", "match", "imatch"] as const;
const SEARCHES = ["wfts", "plfts", "phfts", "fts"] as const;

const OPERATORS_BY_KIND = {
  text: [...PATTERNS, ...LISTS, ...SEARCHES, "gt", "gte", "lt", "lte", ...NULLS, "other"],
  number: [...COMPARISONS, ...LISTS, ...NULLS, "other"],
  date: ["gte", "lt", "eq", "neq", "gt", "lte", ...NULLS, "other"],
  boolean: ["isTrue", "isFalse", ...NULLS],
  enum: ["eq", "neq", ...LISTS, "gt", "gte", "lt", "lte", ...NULLS, "other"],
  uuid: ["eq", "neq", ...LISTS, ...NULLS, "other"],
  /** A JSON column also gets the operators of texts, for paths. */
  json: ["cs", "cd", "eq", ...NULLS, ...PATTERNS.filter((operator) => operator !== "eq"), "gt", "lt", "other"],
  array: ["cs", "cd", "ov", "eq", "neq", ...NULLS, "other"],
  range: ["cs", "cd", "ov", "sl", "sr", "nxr", "nxl", "adj", "eq", "neq", ...NULLS, "other"],
  search: [...SEARCHES, ...NULLS, "other"],
  other: ["eq", "neq", ...NULLS, "other"],
} as const satisfies Record<string, readonly FilterOperator[]>;

const KINDS: Readonly<Record<string, FilterKind>> = {
  text: "text",
  "character varying": "text",
  character: "text",
  citext: "text",
  name: "text",
  smallint: "number",
  integer: "number",
  bigint: "number",
  numeric: "number",
  real: "number",
  "double precision": "number",
  money: "number",
  interval: "number",
  date: "date",
  "timestamp without time zone": "date",
  "timestamp with time zone": "date",
  "time without time zone": "date",
  "time with time zone": "date",
  boolean: "boolean",
  uuid: "uuid",
  json: "json",
  jsonb: "json",
  tsvector: "search",
};

type TypedColumn = {
  readonly base_type: string;
  readonly type_kind: string;
};

export function filterKind({ base_type: type, type_kind: kind }: TypedColumn): FilterKind {
  if (kind === "enum" || kind === "array") return kind;
  return kind === "range" || kind === "multirange" ? "range" : (KINDS[type] ?? "other");
}

export function operatorsOf(kind: FilterKind): readonly FilterOperator[] {
  return OPERATORS_BY_KIND[kind];
}

export function wantsValue(operator: FilterOperator): boolean {
  return AFFIXES[operator][1] !== null;
}

export function formatFilter({ column, path, operator, value }: RowFilter): QueryParameter {
  const [before, after] = AFFIXES[operator];
  const isLiteral = operator === "contains" || operator === "startsWith";
  const text = after === null ? "" : (isLiteral ? value.replace(/[\\%_]/g, "\\$&") : value) + after;
  return [quoteField(column) + path, before + text];
}

/** Returns null for parameters that are no conditions on a column. */
export function parseFilter([name, text]: QueryParameter): RowFilter | null {
  const [, quoted, plain, path = ""] = /^(?:"((?:[^"\\]|\\.)*)"|([^-"]+(?:-(?!>)[^-"]+)*))(->.*)?$/s.exec(name) ?? [];
  const column = quoted?.replace(/\\(.)/gs, "$1") ?? plain;
  if (
    column === undefined ||
    (quoted === undefined && /^(and|or|not\.(and|or)|order|select|limit|offset)$/.test(column))
  )
    return null;
  for (const operator of Object.keys(AFFIXES) as FilterOperator[]) {
    const value = readOperand(operator, text);
    if (value !== null) return { column, path, operator, value };
  }
  return null;
}

/** Returns null if the text belongs to another operator. */
function readOperand(operator: FilterOperator, text: string): string | null {
  const [before, after] = AFFIXES[operator];
  if (after === null) return text === before ? "" : null;
  if (!text.startsWith(before) || !text.endsWith(after) || text.length < before.length + after.length) return null;
  const value = text.slice(before.length, text.length - after.length);
  if (operator !== "contains" && operator !== "startsWith") return value;
  // A pattern is a plain text only if its wildcards are escaped.
  return /^(?:[^\\%_*]|\\[\\%_])*$/.test(value) ? value.replace(/\\(.)/g, "$1") : null;
}

/** The state of the rows in the address of the page: the same parameters as in the table interface. */
export type RowsState = {
  readonly filters: readonly RowFilter[];
  readonly sort: readonly SortTerm[];
};

export function parseRowsState(query: string): RowsState {
  const parameters = [...new URLSearchParams(query)];
  const order = parameters.find(([name]) => name === "order")?.[1] ?? "";
  return {
    filters: parameters.map(parseFilter).filter((filter) => filter !== null),
    sort: [...order.matchAll(/("(?:[^"\\]|\\.)*"|[^",.]+)((?:\.\w+)*)/g)].map(([, name = "", modifiers = ""]) => ({
      column: name.startsWith('"') ? name.slice(1, -1).replace(/\\(.)/gs, "$1") : name,
      descending: modifiers.includes(".desc"),
    })),
  };
}

export function formatRowsState({ filters, sort }: RowsState): string {
  const parameters = filters.map(formatFilter);
  const order = sort.map(({ column, descending }) => `${quoteField(column)}.${descending ? "desc" : "asc"}`).join(",");
  return formatQuery(order ? [...parameters, ["order", order]] : parameters);
}

/** Changes the sorting after a click on a column's header: ascending, descending, none. */
export function toggleSort(sort: readonly SortTerm[], column: string, additive: boolean): SortTerm[] {
  const before = sort.find((term) => term.column === column);
  const next = before ? (before.descending ? [] : [{ column, descending: true }]) : [{ column, descending: false }];
  if (!additive) return next;
  const at = sort.findIndex((term) => term.column === column);
  return at < 0 ? [...sort, ...next] : [...sort.slice(0, at), ...next, ...sort.slice(at + 1)];
}
