import { type PgSelectQueryBuilder, type PgSelectStep, sqlValueWithCodec } from "@dataplan/pg";
import type { GrafastArgumentConfig, Step } from "grafast";
import { type GraphQLArgument, getNamedType, isInputObjectType } from "grafast/graphql";
import { type FilterSource, rowFilterOf } from "../../../plugins/field-sources.ts";
import type { Connection } from "./page-plans.ts";

type ApplyPlan = NonNullable<GrafastArgumentConfig<Step, Connection>["applyPlan"]>;

/** The plan of an argument that is a filter, or whose fields are filters. Null for others. */
export function planFilterArgument(argument: GraphQLArgument): ApplyPlan | null {
  const filter = rowFilterOf(argument);
  if (filter) {
    return (_$parent, $connection, given) => {
      given.apply(rowsOf($connection), (builder: PgSelectQueryBuilder, value: unknown) => {
        if (value != null) applyFilter(filter, builder, value);
        return undefined;
      });
    };
  }
  const type = getNamedType(argument.type);
  const holdsFilters = isInputObjectType(type) && Object.values(type.getFields()).every((field) => rowFilterOf(field));
  return holdsFilters ? (_$parent, $connection, given) => given.apply(rowsOf($connection)) : null;
}

/** Applies a field of a filter input. */
export function applyFilterField(filter: FilterSource) {
  return (builder: PgSelectQueryBuilder, value: unknown) => {
    // A function is a method of Object.prototype with the name of a column: the client sent no such field.
    if (value != null && typeof value !== "function") applyFilter(filter, builder, value);
  };
}

function applyFilter({ condition, codec, isItem }: FilterSource, builder: PgSelectQueryBuilder, value: unknown): void {
  builder.where(condition(builder.alias, sqlValueWithCodec(isItem ? [value] : value, codec)));
}

function rowsOf($connection: Connection): PgSelectStep {
  return $connection.getSubplan() as Step as PgSelectStep;
}
