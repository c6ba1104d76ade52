import type { FieldReference } from "../intent.ts";
import { type NamedSelectColumn, toOutput } from "./scope.ts";
import type { ValueExpression } from "./selection.ts";
import type { SelectionContext } from "./selection-context.ts";

/** The selected column of that name in the response. */
export function findOutput({ name, path }: FieldReference, context: SelectionContext): NamedSelectColumn | null {
  if (path.length > 0) return null;
  const named = context.selectedColumns().filter((one) => one.kind === "value");
  return named.find((one) => one.name === name) ?? null;
}

export function outputValue(one: NamedSelectColumn): ValueExpression {
  return toOutput(one, { grouped: true }).value;
}

/** Whether it is computed of several rows: by an aggregate, or a count of related ones. */
export function isAggregated({ aggregate, value }: NamedSelectColumn): boolean {
  return aggregate !== null || (value?.kind === "cast" ? value.of : value)?.kind === "count";
}
