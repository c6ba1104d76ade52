import type { Catalog } from "#catalog";
import type { Intent } from "#planner";
import type { EqualityFilter } from "./affected-rows.ts";

/** Filters by the equality of a column that hold for all rows of the result. */
export function equalityFilters({ kind, target, selection }: Intent, { schemas }: Catalog): EqualityFilter[] {
  const table = kind === "read" ? schemas.get(target.schema)?.tables.get(target.name) : undefined;
  if (!table) return [];
  return selection.conditions.flatMap(({ path, value: condition }) => {
    if (path.length > 0 || condition.kind !== "filter" || condition.negated) return [];
    const { operation, field } = condition;
    if (field.path.length > 0 || field.measure) return [];
    const found = { relation: table.oid, column: field.name };
    if (operation.kind === "in") return [{ ...found, values: operation.values }];
    const isEquality = operation.kind === "compare" && operation.operator === "eq" && operation.quantifier === null;
    return isEquality ? [{ ...found, values: [operation.value] }] : [];
  });
}
