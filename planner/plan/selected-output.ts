import type { FieldReference } from "../intent/intent.ts";
import { type NamedSelectColumn, toOutput } from "./scope.ts";
import type { ValueExpression } from "./selection.ts";
import type { SelectionContext } from "./selection-context.ts";

/** The selected column of that name in the response. */
export function findOutput({ name, path }: FieldReference, context: SelectionContext): NamedSelectColumn | null {
  return path.length > 0 ? null : context.findSelectedColumn(name);
}

export function outputValue(one: NamedSelectColumn): ValueExpression {
  return toOutput(one, { grouped: true }).value;
}

const COMPUTED: ReadonlySet<ValueExpression["kind"]> = new Set(["count", "distance", "rank", "highlight"]);

/** True for a value computed by an aggregate, a count of related rows or a measure: PostgREST has no such output. */
export function isComputed({ aggregate, value }: NamedSelectColumn): boolean {
  const inner = value?.kind === "cast" ? value.of : value;
  return aggregate !== null || (inner !== null && COMPUTED.has(inner.kind));
}
