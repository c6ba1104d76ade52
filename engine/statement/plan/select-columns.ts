import type { Catalog } from "../../catalog/catalog.ts";
import { ApiError } from "../../errors.ts";
import { ALL_COLUMNS, type FieldReference, type SelectedColumn } from "../intent.ts";
import { fieldOutputName, findRepresentation, planOutput, type SelectScope } from "./scope.ts";
import { columnExpression, type OutputColumn, type SpreadJoin, type ValueExpression } from "./selection.ts";

/** A column of an answer, before it is known whether its aggregate is worked out here or by the rows around it. */
export type SelectColumn = { readonly kind: "all" } | NamedSelectColumn;
export type NamedSelectColumn = {
  readonly kind: "value";
  readonly name: string;
  /** Null: rows are counted. */
  readonly value: ValueExpression | null;
  readonly aggregate: SelectedColumn["aggregate"];
  /** Made by us as json, for which Postgres knows no equality. */
  readonly isJson: boolean;
  /** What the client called it, if it is that and nothing else. */
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
  readonly aggregates: boolean;
};

/** `expand`: each column has to be named. So it has where one has a representation of its own. */
export function planSelectColumns(selected: SelectedColumn, options: SelectColumnOptions): SelectColumn[] {
  const { expand, scope, catalog } = options;
  if (!isStar(selected)) return [planSelectColumn(selected, options)];
  const hasRepresentation = [...scope.columns.values()].some(({ sqlType }) =>
    findRepresentation(catalog, sqlType, "json"),
  );
  if (scope.columns.size === 0 || !(expand || hasRepresentation)) {
    scope.usedNames.add(ALL_COLUMNS.name);
    return [{ kind: "all" }];
  }
  return [...scope.columns.keys()].map((name) =>
    planSelectColumn({ ...ALL_COLUMNS_ITEM, field: { name, path: [] } }, options),
  );
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
  const isAggregate = aggregate !== null || (field !== null && isAggregateName(field.name, options));
  if (isAggregate && !aggregates) throw aggregatesNotAllowed();
  const value = field === null || isAllColumns(field) ? null : castTo(planOutput(field, scope, catalog), cast);
  const isPlain = field !== null && cast === null && aggregate === null;
  return {
    kind: "value",
    name: alias ?? aggregate?.name ?? fieldOutputName(field!),
    value,
    aggregate,
    isJson: false,
    field: isPlain ? field : null,
  };
}

/** PostgREST documents it without parentheses, and serves it where aggregates are off: supabase-js users write `posts(count)`. */
const ALLOWED_AGGREGATE_NAME = "count";

/** Postgres would take the name for an aggregate of the row. */
function isAggregateName(name: string, { scope, catalog }: SelectColumnOptions): boolean {
  if (name === ALLOWED_AGGREGATE_NAME) return false;
  return !scope.columns.has(name) && !scope.computed.has(name) && catalog.rowAggregates.has(name);
}

function aggregatesNotAllowed(): ApiError {
  return new ApiError("invalid", "PGRST123", "Use of aggregate functions is not allowed");
}

/** As a column of the rows that are sent. */
export function toOutput(one: SelectColumn, { grouped }: { readonly grouped: boolean }): OutputColumn {
  if (one.kind === "all") return one;
  const { name, value, aggregate, isJson } = one;
  if (aggregate) {
    const aggregated: ValueExpression = { kind: "aggregate", name: aggregate.name, of: value };
    return { kind: "value", name, value: castTo(aggregated, aggregate.cast), isAggregate: true };
  }
  return { kind: "value", name, value: grouped && isJson ? castTo(value!, "jsonb") : value!, isAggregate: false };
}

/** As a column for the rows around it: under a name of our own, since two relations may have columns of one name. */
export function toSpreadOutput({ value }: NamedSelectColumn, index: number): OutputColumn {
  return { kind: "value", name: spreadColumnName(index), value: value ?? { kind: "one" }, isAggregate: false };
}

/** The same column as the rows around it have it. */
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
