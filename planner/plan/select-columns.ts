import { baseTypeOf, type Catalog, hasSmartTag, ownValuesOf } from "#catalog";
import { ApiError } from "#runtime";
import { type AggregateName, ALL_COLUMNS, type FieldReference, type SelectedColumn } from "../intent.ts";
import {
  fieldOutputName,
  findRepresentation,
  isBuiltInType,
  planOutput,
  type SelectScope,
  typeOfField,
} from "./scope.ts";
import { columnExpression, type OutputColumn, type SpreadJoin, type ValueExpression } from "./selection.ts";

type SelectedAggregate = NonNullable<SelectedColumn["aggregate"]>;
type PlannedAggregate = SelectedAggregate & Pick<ValueExpression & { kind: "aggregate" }, "schema">;

/** A selected column, before it is known whether its aggregate is computed here or in the parent. */
export type SelectColumn = { readonly kind: "all" } | NamedSelectColumn;
export type NamedSelectColumn = {
  readonly kind: "value";
  readonly name: string;
  /** Null for a count of rows. */
  readonly value: ValueExpression | null;
  readonly aggregate: PlannedAggregate | null;
  /** Whether it is built as json, a type without equality. */
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
  readonly scope: SelectScope;
  readonly catalog: Catalog;
  readonly role: string;
  readonly aggregates: boolean;
};

/** With `expand` all columns are listed; also if one has a cast to JSON, or is withheld from the role. */
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
/** Of others, Postgres's message names the aggregate as it is written. */
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
  const { scope, catalog, aggregates } = options;
  if (aggregate !== null && !aggregates) throw aggregatesNotAllowed();
  if (field !== null) refuseAggregateName(field.name, options);
  const value = field === null || isAllColumns(field) ? null : castTo(planOutput(field, scope, catalog), cast);
  const isPlain = field !== null && cast === null && aggregate === null;
  return {
    kind: "value",
    name: alias ?? aggregate?.name ?? fieldOutputName(field!),
    value,
    aggregate: aggregate && { ...aggregate, schema: aggregateSchema(aggregate, { field, cast }, scope) },
    isJson: false,
    field: isPlain ? field : null,
  };
}

/** Allowed without parentheses, as PostgREST documents it, even with aggregates disabled: supabase-js users write `posts(count)`. */
const ALLOWED_AGGREGATE_NAME = "count";

/** Postgres parses a name that is no column as a call of an aggregate with the row. */
export function refuseAggregateName(
  name: string,
  { scope, catalog, aggregates }: Pick<SelectColumnOptions, "scope" | "catalog" | "aggregates">,
): void {
  if (aggregates || name === ALLOWED_AGGREGATE_NAME || scope.columns.has(name) || scope.computed.has(name)) return;
  if (catalog.rowAggregates.has(name)) throw aggregatesNotAllowed();
}

function aggregatesNotAllowed(): ApiError {
  return new ApiError("invalid", "PGRST123", "Use of aggregate functions is not allowed");
}

/** The column as an output of the response. */
export function toOutput(one: SelectColumn, { grouped }: { readonly grouped: boolean }): OutputColumn {
  if (one.kind === "all") return one;
  const { name, value, aggregate, isJson } = one;
  if (aggregate) {
    const aggregated: ValueExpression = {
      kind: "aggregate",
      name: aggregate.name,
      of: value,
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

/** The same column in the parent. */
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

function castTo(value: ValueExpression, type: string | null): ValueExpression {
  return type === null ? value : { kind: "cast", of: value, type };
}
