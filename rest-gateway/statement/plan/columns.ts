import type { Catalog } from "../../../engine/catalog/catalog.ts";
import { ApiError } from "../../../engine/errors.ts";
import { EVERY_COLUMN, type Field, type SelectedColumn } from "../intent.ts";
import { outputName, planOutput, representation } from "./field.ts";
import type { Scope } from "./scope.ts";
import { column, type Expression, type Output, type Spread } from "./selection.ts";

/** A column of an answer, before it is known whether its aggregate is worked out here or by the rows around it. */
export type Column = { readonly kind: "all" } | NamedColumn;
export type NamedColumn = {
  readonly kind: "value";
  readonly name: string;
  /** Null: rows are counted. */
  readonly value: Expression | null;
  readonly aggregate: SelectedColumn["aggregate"];
  /** Made by us as json, for which Postgres knows no equality. */
  readonly isJson: boolean;
  /** What the client called it, if it is that and nothing else. */
  readonly field: Field | null;
};

export const ALL: SelectedColumn = {
  kind: "column",
  field: EVERY_COLUMN,
  alias: null,
  cast: null,
  aggregate: null,
};

type Wish = {
  readonly expand: boolean;
  readonly scope: Scope;
  readonly catalog: Catalog;
  readonly aggregates: boolean;
};

/** `expand`: each column has to be named. So it has where one has a representation of its own. */
export function toColumns(selected: SelectedColumn, wish: Wish): Column[] {
  const { expand, scope, catalog } = wish;
  if (!isStar(selected)) return [toColumn(selected, wish)];
  const hasRepresentation = [...scope.columns.values()].some(({ sqlType }) => representation(catalog, sqlType, "json"));
  if (scope.columns.size === 0 || !(expand || hasRepresentation)) {
    scope.used.add(EVERY_COLUMN.name);
    return [{ kind: "all" }];
  }
  return [...scope.columns.keys()].map((name) => toColumn({ ...ALL, field: { name, path: [] } }, wish));
}

function isStar({ field, aggregate }: SelectedColumn): boolean {
  return aggregate === null && isAll(field);
}

function isAll(field: Field | null): boolean {
  return field?.name === EVERY_COLUMN.name;
}

function toColumn({ field, alias, cast, aggregate }: SelectedColumn, wish: Wish): NamedColumn {
  const { scope, catalog, aggregates } = wish;
  const isAggregate = aggregate !== null || (field !== null && isAggregateByName(field.name, wish));
  if (isAggregate && !aggregates) throw aggregatesSwitchedOff();
  const value = field === null || isAll(field) ? null : withCast(planOutput(field, scope, catalog), cast);
  const isPlain = field !== null && cast === null && aggregate === null;
  return {
    kind: "value",
    name: alias ?? aggregate?.name ?? outputName(field!),
    value,
    aggregate,
    isJson: false,
    field: isPlain ? field : null,
  };
}

/** PostgREST documents it without parentheses, and serves it where aggregates are off: supabase-js users write `posts(count)`. */
const ALWAYS_SERVED = "count";

/** Postgres would take the name for an aggregate of the row. */
function isAggregateByName(name: string, { scope, catalog }: Wish): boolean {
  if (name === ALWAYS_SERVED) return false;
  return !scope.columns.has(name) && !scope.computed.has(name) && catalog.rowAggregates.has(name);
}

function aggregatesSwitchedOff(): ApiError {
  return new ApiError(400, "PGRST123", "Use of aggregate functions is not allowed");
}

/** As a column of the rows that are sent. */
export function toOutput(one: Column, { grouped }: { readonly grouped: boolean }): Output {
  if (one.kind === "all") return one;
  const { name, value, aggregate, isJson } = one;
  if (aggregate) {
    const worked: Expression = { kind: "aggregate", name: aggregate.name, of: value };
    return { kind: "value", name, value: withCast(worked, aggregate.cast), isAggregate: true };
  }
  return { kind: "value", name, value: grouped && isJson ? withCast(value!, "jsonb") : value!, isAggregate: false };
}

/** As a column for the rows around it: under a name of our own, since two relations may have columns of one name. */
export function toSpreadOutput({ value }: NamedColumn, index: number): Output {
  return { kind: "value", name: spreadName(index), value: value ?? { kind: "one" }, isAggregate: false };
}

/** The same column as the rows around it have it. */
export function fromSpread(
  one: NamedColumn,
  index: number,
  { alias, form }: Pick<Spread, "alias" | "form">,
): NamedColumn {
  const isJson = form === "arrays" || one.isJson || one.value?.kind === "represented";
  return { ...one, value: column(alias, spreadName(index)), isJson };
}

function spreadName(index: number): string {
  return `c${index + 1}`;
}

function withCast(value: Expression, type: string | null): Expression {
  return type === null ? value : { kind: "cast", of: value, type };
}
