import {
  ALL_COLUMNS,
  type CallIntent,
  type DeleteIntent,
  type FieldReference,
  type FilterOperation,
  type InsertIntent,
  type JsonPathStep,
  type OrderTerm,
  type ReadIntent,
  type RowCondition,
  type RowRange,
  type RowSelection,
  type SelectedColumn,
  type SelectedRelation,
  type SelectItem,
  type UpdateIntent,
  type WithEmbedPath,
} from "../../planner/intent/intent.ts";

// Intents, written as short as their parts allow.

/** `data->a->>0` is field("data", "a", ">0"): a key, or a key after a second arrow. */
export function field(name: string, ...path: readonly (string | number | JsonPathStep)[]): FieldReference {
  return { name, path: path.map((step) => (typeof step === "object" ? step : { arrow: "->", key: step })) };
}

export function column(name: string, more: Partial<Omit<SelectedColumn, "kind">> = {}): SelectedColumn {
  return { kind: "column", field: field(name), alias: null, cast: null, aggregate: null, ...more };
}

export function everyColumn(): SelectedColumn {
  return { ...column(""), field: ALL_COLUMNS };
}

export function columns(...names: readonly string[]): SelectedColumn[] {
  return names.map((name) => column(name));
}

export function aggregate(
  name: "count" | "sum" | "avg" | "min" | "max",
  of: string | null = null,
  more: Partial<SelectedColumn> = {},
): SelectedColumn {
  return {
    kind: "column",
    field: of === null ? null : field(of),
    alias: null,
    cast: null,
    aggregate: { name, cast: null },
    ...more,
  };
}

export function relation(
  name: string,
  select: readonly SelectItem[],
  more: Partial<Omit<SelectedRelation, "kind" | "name" | "select">> = {},
): SelectedRelation {
  return { kind: "relation", name, alias: null, hint: null, join: null, spread: false, select, ...more };
}

export function filter(on: FieldReference | string, operation: FilterOperation, negated = false): RowCondition {
  return { kind: "filter", field: typeof on === "string" ? field(on) : on, negated, operation };
}

export function eq(on: FieldReference | string, value: string): RowCondition {
  return compare(on, "eq", value);
}

export function compare(
  on: FieldReference | string,
  operator: (FilterOperation & { kind: "compare" })["operator"],
  value: string,
  quantifier: "any" | "all" | null = null,
): RowCondition {
  return filter(on, { kind: "compare", operator, quantifier, value });
}

export function isNull(on: string, negated = false): RowCondition {
  return filter(on, { kind: "is", value: "null" }, negated);
}

export function at<T>(path: string, value: T): WithEmbedPath<T> {
  return { path: path === "" ? [] : path.split("."), value };
}

export function term(name: string, more: Partial<OrderTerm> = {}): OrderTerm {
  return { field: field(name), relation: null, direction: null, nulls: null, ...more };
}

type ShapeParts = Partial<RowSelection> & {
  readonly where?: readonly RowCondition[];
  readonly order?: readonly OrderTerm[];
  readonly window?: RowRange;
};

function shape({ where, order, window, ...parts }: ShapeParts): RowSelection {
  return {
    select: parts.select ?? [],
    conditions: [...(parts.conditions ?? []), ...(where ?? []).map((condition) => at("", condition))],
    orders: [...(parts.orders ?? []), ...(order ? [at("", order)] : [])],
    ranges: [...(parts.ranges ?? []), ...(window ? [at("", window)] : [])],
  };
}

type Named<T> = Partial<T> & { readonly schema?: string };

export function read(
  name: string,
  parts: ShapeParts = {},
  { schema = "api", ...more }: Named<ReadIntent> = {},
): ReadIntent {
  return { kind: "read", target: { schema, name }, selection: shape(parts), count: null, page: null, ...more };
}

export function insert(
  name: string,
  rows: object,
  parts: ShapeParts = {},
  { schema = "api", ...more }: Named<InsertIntent> = {},
): InsertIntent {
  return {
    kind: "insert",
    target: { schema, name },
    selection: shape(parts),
    count: null,
    returned: "rows",
    payload: payload(rows),
    missingAsDefault: false,
    upsert: null,
    single: false,
    ...more,
  };
}

export function update(
  name: string,
  row: object,
  parts: ShapeParts = {},
  { schema = "api", ...more }: Named<UpdateIntent> = {},
): UpdateIntent {
  return {
    kind: "update",
    target: { schema, name },
    selection: shape(parts),
    count: null,
    returned: "rows",
    payload: payload(row),
    missingAsDefault: false,
    ...more,
  };
}

export function remove(
  name: string,
  parts: ShapeParts = {},
  { schema = "api", ...more }: Named<DeleteIntent> = {},
): DeleteIntent {
  return { kind: "delete", target: { schema, name }, selection: shape(parts), count: null, returned: "rows", ...more };
}

/** Returns the intent of a call by GET: each argument is a text. */
export function call(
  name: string,
  given: Readonly<Record<string, string | readonly string[]>> = {},
  parts: ShapeParts = {},
  { schema = "api", ...more }: Named<CallIntent> = {},
): CallIntent {
  const values = Object.entries(given).flatMap(([key, value]) => [value].flat().map((each) => [key, each] as const));
  return {
    kind: "call",
    target: { schema, name },
    argument: { kind: "query", values },
    selection: shape(parts),
    count: null,
    page: null,
    readOnly: true,
    ...more,
  };
}

/** Returns the intent of a call by POST: the arguments are a JSON object. */
export function post(name: string, body: unknown, parts: ShapeParts = {}, more: Named<CallIntent> = {}): CallIntent {
  const first: unknown = Array.isArray(body) ? body[0] : body;
  const names = typeof first === "object" && first !== null && !Array.isArray(first) ? Object.keys(first) : null;
  const argument = { kind: "json" as const, body: Buffer.from(JSON.stringify(body)), names };
  return { ...call(name, {}, parts, more), argument, readOnly: false };
}

function payload(rows: object) {
  const first = Array.isArray(rows) ? (rows[0] ?? {}) : rows;
  return { json: Buffer.from(JSON.stringify(rows)), columns: Object.keys(first), isArray: Array.isArray(rows) };
}
