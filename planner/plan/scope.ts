import {
  baseTypeOf,
  type Catalog,
  type CatalogTable,
  type DataType,
  findRepresentation,
  hasSmartTag,
  isBuiltInType,
  type OwnValue,
  ownValuesOf,
  type TypeAttribute,
} from "#catalog";
import { ApiError } from "#runtime";
import {
  type AggregateName,
  ALL_COLUMNS,
  type FieldReference,
  type SelectedAggregate,
  type SelectedColumn,
} from "../intent/intent.ts";
import {
  type CompositeRow,
  columnExpression,
  type OutputColumn,
  type SpreadJoin,
  type ValueExpression,
} from "./selection.ts";

/** The rows that names in one selection refer to. */
export type SelectScope = {
  /** The alias in the statement; Postgres includes it in error messages. */
  readonly alias: string;
  /** The name in our error messages. */
  readonly name: string;
  /** Null if the rows are not of a table: then they have no relationships. */
  readonly table: CatalogTable | null;
  readonly columns: ReadonlyMap<string, TypeAttribute>;
  /** Columns whose values the role reads in its own rows only. */
  readonly ownValues: ReadonlyMap<string, OwnValue>;
  /** The types of computed fields. */
  readonly computed: ReadonlyMap<string, DataType>;
  readonly depth: number;
  /** The aliases of this and all outer selections. */
  readonly takenAliases: ReadonlySet<string>;
  /** How to pass the row to a function if it has lost its type. */
  readonly composite: CompositeRow | null;
  /** The names that the selection uses; all columns count as the name of `ALL_COLUMNS`. */
  readonly usedNames: Set<string>;
};

export type RowNames = Pick<SelectScope, "columns" | "computed">;

export function hasName({ columns, computed }: RowNames, name: string): boolean {
  return columns.has(name) || computed.has(name);
}

type OuterScope = Pick<SelectScope, "depth" | "takenAliases">;

/** The scope of rows that are selected from a table, with the privileges of the role. */
export function tableScope(
  table: CatalogTable,
  outer: OuterScope & { readonly alias: string },
  { catalog, role }: { readonly catalog: Catalog; readonly role: string },
): SelectScope {
  return { ...tableRowScope(table, outer), ownValues: ownValuesOf(catalog, role, table) };
}

/** The scope of values that have the row type of a table, such as the result of a function. */
export function tableRowScope(
  table: CatalogTable,
  { alias, ...outer }: OuterScope & { readonly alias: string },
): SelectScope {
  const computed = new Map([...table.computedColumns].map(([name, routine]) => [name, routine.returns.type]));
  return { ...rowScope(alias, table.columns, outer), name: table.name, table, computed };
}

const NO_OWN_VALUES: SelectScope["ownValues"] = new Map();

/** The scope of rows that do not belong to a table. */
export function rowScope(
  alias: string,
  columns: SelectScope["columns"],
  { depth, takenAliases }: OuterScope,
): SelectScope {
  return {
    alias,
    name: alias,
    table: null,
    columns,
    ownValues: NO_OWN_VALUES,
    computed: new Map(),
    depth,
    takenAliases: new Set(takenAliases).add(alias),
    composite: null,
    usedNames: new Set(),
  };
}

/** Refers to a name of the row, whether or not it is a known column. */
export function useColumn(scope: SelectScope, name: string): ValueExpression {
  const own = scope.ownValues.get(name);
  if (own) return { kind: "own value", by: own.function, key: useColumn(scope, own.key) };
  scope.usedNames.add(name);
  return columnExpression(scope.alias, name);
}

/** Postgres truncates longer names, so two could become equal. */
const MAX_NAME_BYTES = 63;

/** An alias that no outer selection uses: `films`, or `films_1` if nested. */
export function chooseAlias(preferred: string, depth: number, takenAliases: ReadonlySet<string>): string {
  const suffix = depth === 0 ? "" : `_${depth}`;
  let alias = appendSuffix(preferred, suffix);
  for (let attempt = 2; takenAliases.has(alias); attempt++) alias = appendSuffix(preferred, `${suffix}_${attempt}`);
  return alias;
}

function appendSuffix(name: string, suffix: string): string {
  let text = name;
  while (Buffer.byteLength(text + suffix) > MAX_NAME_BYTES) text = [...text].slice(0, -1).join("");
  return text + suffix;
}

/** A column, or the value at its JSON path. Postgres rejects unknown names (42703). */
export function planField({ name, path }: FieldReference, scope: SelectScope): ValueExpression {
  const whole = useColumn(scope, name);
  if (path.length === 0) return whole;
  return { kind: "json", of: whole, convert: !isJsonType(typeOfField(name, scope)), path };
}

/** The value for clients: a domain may have a cast to JSON. */
function planOutput(
  field: FieldReference,
  { scope, catalog, planMeasured }: Pick<SelectColumnOptions, "scope" | "catalog" | "planMeasured">,
): ValueExpression {
  if (field.measure) return planMeasured(field);
  const value = planField(field, scope);
  const by = field.path.length === 0 ? findRepresentation(catalog, sqlTypeOfField(field.name, scope), "json") : null;
  return by === null ? value : { kind: "represented", by, of: value };
}

/** The function that parses a filter's text to the field's domain. */
export function filterReader({ name, path }: FieldReference, scope: SelectScope, catalog: Catalog): string | null {
  return path.length === 0 ? findRepresentation(catalog, "text", sqlTypeOfField(name, scope)) : null;
}

export function compositeTypeOf({ name, path }: FieldReference, scope: SelectScope): string | null {
  const type = path.length === 0 ? typeOfField(name, scope) : null;
  const base = type && baseTypeOf(type);
  return base?.kind === "composite" ? base.sqlName : null;
}

/** True for a field with a text type of Postgres: only Postgres's own functions and operators apply, whatever is on the search path. */
export function isPlainText({ name, path }: FieldReference, scope: SelectScope): boolean {
  if (path.length > 0) return path.at(-1)!.arrow === "->>";
  const type = typeOfField(name, scope);
  return type !== null && isBuiltInType(type) && ["text", "varchar", "bpchar"].includes(baseTypeOf(type).name);
}

export function needsTsvectorConversion({ name }: FieldReference, scope: SelectScope): boolean {
  const type = typeOfField(name, scope);
  return type === null || baseTypeOf(type).name !== "tsvector";
}

/** The name in the response: `data->a->>b` is b, and `data->0` is data. */
export function fieldOutputName({ name, path }: FieldReference): string {
  // A key may be empty, but a name may not.
  const key = path.findLast((step) => typeof step.key === "string" && step.key !== "")?.key;
  return typeof key === "string" ? key : name;
}

export function typeOfField(name: string, scope: SelectScope): DataType | null {
  return scope.columns.get(name)?.type ?? scope.computed.get(name) ?? null;
}

function sqlTypeOfField(name: string, scope: SelectScope): string | null {
  return scope.columns.get(name)?.sqlType ?? null;
}

function isJsonType(type: DataType | null): boolean {
  return type?.schema === "pg_catalog" && (type.name === "json" || type.name === "jsonb");
}

type PlannedAggregate = SelectedAggregate & Pick<ValueExpression & { kind: "aggregate" }, "schema">;

/** A selected column, before it is decided if its aggregate is computed here or in the parent. */
export type SelectColumn = { readonly kind: "all" } | NamedSelectColumn;
export type NamedSelectColumn = {
  readonly kind: "value";
  readonly name: string;
  /** Null for a count of rows. */
  readonly value: ValueExpression | null;
  readonly aggregate: PlannedAggregate | null;
  /** True if the value is built as json, a type without equality. */
  readonly isJson: boolean;
  /** The client's field, if it is a plain field. */
  readonly field: FieldReference | null;
};

export const ALL_COLUMNS_ITEM: SelectedColumn = {
  kind: "column",
  field: ALL_COLUMNS,
  alias: null,
  cast: null,
  aggregate: null,
};

type SelectColumnOptions = {
  readonly expand: boolean;
  readonly planMeasured: (field: FieldReference) => ValueExpression;
  readonly scope: SelectScope;
  readonly catalog: Catalog;
  readonly role: string;
  readonly aggregates: boolean;
};

/** Plans the columns. `expand` lists all columns; so does a column that has a cast to JSON, or that is withheld from the role. */
export function planSelectColumns(selected: SelectedColumn, options: SelectColumnOptions): SelectColumn[] {
  const { expand, scope, catalog } = options;
  if (!isStar(selected)) return [planSelectColumn(selected, options)];
  const hasRepresentation = [...scope.columns.values()].some(({ sqlType }) =>
    findRepresentation(catalog, sqlType, "json"),
  );
  const withheld = withheldColumns(options);
  const isPlain = !(expand || hasRepresentation || withheld.size > 0 || scope.ownValues.size > 0);
  if (scope.columns.size === 0 || isPlain) {
    scope.usedNames.add(ALL_COLUMNS.name);
    return [{ kind: "all" }];
  }
  return [...scope.columns.keys()]
    .filter((name) => !withheld.has(name))
    .map((name) => planSelectColumn({ ...ALL_COLUMNS_ITEM, field: { name, path: [] } }, options));
}

/** Columns with personal data (`@personal`) that the role may not select: `*` leaves them out instead of failing. */
function withheldColumns({ scope, catalog, role }: SelectColumnOptions): ReadonlySet<string> {
  const { table } = scope;
  if (table === null) return new Set();
  const own = ownValuesOf(catalog, role, table);
  const withheld = [...table.columns.values()].filter(
    ({ name, comment }) =>
      hasSmartTag(comment, "personal") && !catalog.hasPrivilege(role, "select", table, name) && !own.has(name),
  );
  return new Set(withheld.map(({ name }) => name));
}

const NUMBERS = ["int2", "int4", "int8", "numeric", "float4", "float8"];
const ORDERED = [
  ...NUMBERS,
  ..."text varchar bpchar date time timetz timestamp timestamptz interval inet money oid".split(" "),
];
/** The types that an aggregate accepts. For other types the aggregate is not qualified, so that Postgres's message names it as written. */
const AGGREGATED_TYPES: Readonly<Record<Exclude<AggregateName, "count">, ReadonlySet<string>>> = {
  sum: new Set([...NUMBERS, "interval", "money"]),
  avg: new Set([...NUMBERS, "interval"]),
  min: new Set(ORDERED),
  max: new Set(ORDERED),
};

function aggregateSchema(
  { name }: SelectedAggregate,
  { field, cast }: Pick<SelectedColumn, "field" | "cast">,
  scope: SelectScope,
): "pg_catalog" | null {
  if (name === "count" || field === null) return "pg_catalog";
  if (cast !== null || field.path.length > 0) return null;
  const type = typeOfField(field.name, scope);
  return type && isBuiltInType(type) && AGGREGATED_TYPES[name].has(baseTypeOf(type).name) ? "pg_catalog" : null;
}

function isStar({ field, aggregate }: SelectedColumn): boolean {
  return aggregate === null && isAllColumns(field);
}

function isAllColumns(field: FieldReference | null): boolean {
  return field?.name === ALL_COLUMNS.name;
}

function planSelectColumn(
  { field, alias, cast, aggregate }: SelectedColumn,
  options: SelectColumnOptions,
): NamedSelectColumn {
  const { scope, aggregates } = options;
  if (aggregate !== null && !aggregates) throw aggregatesNotAllowed();
  if (field !== null && !field.measure) refuseAggregateName(field.name, options);
  const isRowCount = aggregate === null && field !== null && namesRowCount(field, scope);
  const value =
    field === null || isAllColumns(field) ? null : castTo(isRowCount ? ROW_COUNT : planOutput(field, options), cast);
  const isPlain = field !== null && cast === null && aggregate === null && !field.measure;
  return {
    kind: "value",
    name: alias ?? aggregate?.name ?? field!.measure?.name ?? fieldOutputName(field!),
    value,
    aggregate: aggregate && { ...aggregate, schema: aggregateSchema(aggregate, { field, cast }, scope) },
    isJson: false,
    field: isPlain ? field : null,
  };
}

/** Allowed without parentheses, as PostgREST documents it, even with aggregates disabled: supabase-js users write `posts(count)`. */
const ALLOWED_AGGREGATE_NAME = "count";

/** Postgres would read `count` as the count of whole rows, for which the caller needs SELECT on each column. */
const ROW_COUNT: ValueExpression = {
  kind: "aggregate",
  name: ALLOWED_AGGREGATE_NAME,
  of: null,
  distinct: false,
  schema: "pg_catalog",
};

function namesRowCount({ name, path, measure }: FieldReference, scope: SelectScope): boolean {
  return name === ALLOWED_AGGREGATE_NAME && path.length === 0 && !measure && !hasName(scope, name);
}

/** Refuses the name of an aggregate: Postgres parses a name that is not a column as a call with the row. */
export function refuseAggregateName(
  name: string,
  { scope, catalog, aggregates }: Pick<SelectColumnOptions, "scope" | "catalog" | "aggregates">,
): void {
  if (aggregates || name === ALLOWED_AGGREGATE_NAME || hasName(scope, name)) return;
  if (catalog.rowAggregates.has(name)) throw aggregatesNotAllowed();
}

function aggregatesNotAllowed(): ApiError {
  return new ApiError("invalid", "PGRST123", "Use of aggregate functions is not allowed");
}

type NamedOutput = Extract<OutputColumn, { kind: "value" }>;

/** The column as an output of the response. */
export function toOutput(
  { name, value, aggregate, isJson }: NamedSelectColumn,
  { grouped }: { readonly grouped: boolean },
): NamedOutput {
  if (aggregate) {
    const aggregated: ValueExpression = {
      kind: "aggregate",
      name: aggregate.name,
      of: value,
      distinct: aggregate.distinct ?? false,
      schema: aggregate.schema,
    };
    return { kind: "value", name, value: castTo(aggregated, aggregate.cast), isAggregate: true };
  }
  return { kind: "value", name, value: grouped && isJson ? castTo(value!, "jsonb") : value!, isAggregate: false };
}

/** The column as an output for the parent, under a generated name, since two relations may have equal column names. */
export function toSpreadOutput({ value }: NamedSelectColumn, index: number): OutputColumn {
  return { kind: "value", name: spreadColumnName(index), value: value ?? { kind: "one" }, isAggregate: false };
}

/** The parent's column for such an output. */
export function fromSpreadOutput(
  one: NamedSelectColumn,
  index: number,
  { alias, form }: Pick<SpreadJoin, "alias" | "form">,
): NamedSelectColumn {
  const isJson = form === "arrays" || one.isJson || one.value?.kind === "represented";
  return { ...one, value: columnExpression(alias, spreadColumnName(index)), isJson };
}

function spreadColumnName(index: number): string {
  return `c${index + 1}`;
}

export function castTo(value: ValueExpression, type: string | null): ValueExpression {
  return type === null ? value : { kind: "cast", of: value, type };
}
