import {
  type CallIntent,
  type Condition,
  type DeleteIntent,
  EVERY_COLUMN,
  type Field,
  type InsertIntent,
  type JsonStep,
  type Operation,
  type OrderTerm,
  type Placed,
  type ReadIntent,
  type SelectedColumn,
  type SelectedRelation,
  type SelectItem,
  type Shape,
  type UpdateIntent,
  type Window,
} from "../../../rest-gateway/statement/intent.ts";

// Intents, written as short as their parts allow.

/** `data->a->>0` is field("data", "a", ">0"): a key, or a key after a second arrow. */
export function field(name: string, ...path: readonly (string | number | JsonStep)[]): Field {
  return { name, path: path.map((step) => (typeof step === "object" ? step : { arrow: "->", key: step })) };
}

export function column(name: string, more: Partial<Omit<SelectedColumn, "kind">> = {}): SelectedColumn {
  return { kind: "column", field: field(name), alias: null, cast: null, aggregate: null, ...more };
}

export function everyColumn(): SelectedColumn {
  return { ...column(""), field: EVERY_COLUMN };
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

export function filter(on: Field | string, operation: Operation, negated = false): Condition {
  return { kind: "filter", field: typeof on === "string" ? field(on) : on, negated, operation };
}

export function eq(on: Field | string, value: string): Condition {
  return compare(on, "eq", value);
}

export function compare(
  on: Field | string,
  operator: (Operation & { kind: "compare" })["operator"],
  value: string,
  quantifier: "any" | "all" | null = null,
): Condition {
  return filter(on, { kind: "compare", operator, quantifier, value });
}

export function isNull(on: string, negated = false): Condition {
  return filter(on, { kind: "is", value: "null" }, negated);
}

export function at<T>(path: string, value: T): Placed<T> {
  return { path: path === "" ? [] : path.split("."), value };
}

export function term(name: string, more: Partial<OrderTerm> = {}): OrderTerm {
  return { field: field(name), relation: null, direction: null, nulls: null, ...more };
}

type ShapeParts = Partial<Shape> & {
  readonly where?: readonly Condition[];
  readonly order?: readonly OrderTerm[];
  readonly window?: Window;
};

function shape({ where, order, window, ...parts }: ShapeParts): Shape {
  return {
    select: parts.select ?? [],
    conditions: [...(parts.conditions ?? []), ...(where ?? []).map((condition) => at("", condition))],
    orders: [...(parts.orders ?? []), ...(order ? [at("", order)] : [])],
    windows: [...(parts.windows ?? []), ...(window ? [at("", window)] : [])],
  };
}

type Named<T> = Partial<T> & { readonly schema?: string };

export function read(
  name: string,
  parts: ShapeParts = {},
  { schema = "api", ...more }: Named<ReadIntent> = {},
): ReadIntent {
  return { kind: "read", target: { schema, name }, shape: shape(parts), count: null, page: null, ...more };
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
    shape: shape(parts),
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
    shape: shape(parts),
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
  return { kind: "delete", target: { schema, name }, shape: shape(parts), count: null, returned: "rows", ...more };
}

/** As GET calls: each argument is a text. */
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
    shape: shape(parts),
    count: null,
    page: null,
    readOnly: true,
    ...more,
  };
}

/** As POST calls: the arguments are a JSON object. */
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
