import type { PgCodec, PgSelectQueryBuilder, PgSelectSingleStep, PgSelectStep } from "@dataplan/pg";
import { constant, type FieldPlanResolver, lambda, type Step } from "grafast";
import type { FieldSource } from "../../../plugins/field-sources.ts";
import type { PgTable } from "../../../plugins/table.ts";
import { memoizePerObject } from "../../../runtime/index.ts";
import type { Connection } from "./page-plans.ts";

type AggregateSource = Extract<FieldSource, { readonly kind: "aggregate" }>;

export function planAggregates({
  maxPageSize,
}: Extract<FieldSource, { readonly kind: "aggregates" }>): FieldPlanResolver {
  return ($parent) => {
    const $connection = $parent as Step as Connection;
    const $rows = $connection.cloneSubplanWithoutPagination("aggregate") as unknown as PgSelectStep<PgTable>;
    const groups = groupsOf($rows);
    // Each step has a function of its own, since equal steps are merged before the selected columns are known.
    $rows.apply(
      lambda(constant(null), () => (builder: PgSelectQueryBuilder) => {
        for (const { value, codec } of groups) {
          builder.groupBy({ fragment: value(builder.alias), codec: codec as PgCodec });
        }
      }),
    );
    $rows.setFirst(constant(maxPageSize));
    return $rows;
  };
}

/** The values by which a step groups its rows: fields add theirs when they are planned, after the step itself. */
const groupsOf = memoizePerObject((_$rows: PgSelectStep): AggregateSource[] => []);

export function planAggregate(source: AggregateSource): FieldPlanResolver {
  return ($parent) => {
    const $row = $parent as Step as PgSelectSingleStep<PgTable>;
    const $rows = $row.getClassStep();
    if (source.isGroup) groupsOf($rows).push(source);
    return $row.select(source.value($rows.alias), source.codec as PgCodec);
  };
}
