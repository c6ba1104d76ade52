import { ApiError } from "#runtime";
import type { FieldReference, OrderTerm } from "../intent/intent.ts";
import { planMeasuredField } from "./plan-measure.ts";
import { countValue } from "./related-count.ts";
import { fieldOutputName, hasName, type NamedSelectColumn, refuseAggregateName } from "./scope.ts";
import { embedName, relationNotEmbedded } from "./select-tree.ts";
import { findOutput, isComputed, outputValue } from "./selected-output.ts";
import type { OrderExpression, ValueExpression } from "./selection.ts";
import type { PlannedRelation, SelectionContext } from "./selection-context.ts";

export function planOrdering(term: OrderTerm, context: SelectionContext): OrderExpression {
  const { direction, nulls } = term;
  return { value: planOrderValue(term, context), direction, nulls };
}

function planOrderValue({ field, relation, by }: OrderTerm, context: SelectionContext): ValueExpression {
  if (by === "count") return countValue(context.findRelation(field.name));
  return relation === null ? planOrderField(field, context) : planRelatedOrder(relation, field, context);
}

/** Plans a name. One that is not a column may be an aggregate's or a measure's; an alias of a column does not count, as in PostgREST. */
function planOrderField(field: FieldReference, context: SelectionContext): ValueExpression {
  const output = field.measure || hasName(context.scope, field.name) ? null : findOutput(field, context);
  return output && isComputed(output) ? outputValue(output) : planRowField(field, context);
}

/** Postgres rejects unknown names. */
export function planRowField(field: FieldReference, context: SelectionContext): ValueExpression {
  const { scope, planContext } = context;
  if (!field.measure) refuseAggregateName(field.name, { scope, ...planContext });
  return planMeasuredField(field, context);
}

function planRelatedOrder(
  name: string,
  field: FieldReference,
  { scope, relations }: SelectionContext,
): ValueExpression {
  const related = relations.find(({ branch }) => embedName(branch) === name);
  if (!related) throw relationNotEmbedded(name);
  if (!related.toOne) throw relationNotToOne(scope.name, name);
  return spreadColumnValue(related, field) ?? lookupExpression(related, field);
}

/** Grouped rows can be ordered by a spread column only through its output. */
function spreadColumnValue({ spread, columns }: PlannedRelation, field: FieldReference): ValueExpression | null {
  if (!spread || field.measure) return null;
  return (findColumnByName(columns, field) ?? columns.find((one) => isSameField(one.field, field)))?.value ?? null;
}

function lookupExpression({ subquery: selection, context }: PlannedRelation, field: FieldReference): ValueExpression {
  return { kind: "lookup", value: planSelectedField(field, context), from: selection };
}

function findColumnByName(
  columns: readonly NamedSelectColumn[],
  { name, path }: FieldReference,
): NamedSelectColumn | undefined {
  return path.length === 0 ? columns.find((one) => one.aggregate === null && one.name === name) : undefined;
}

/** A name refers to an output of the response first, then to a column. */
function planSelectedField(field: FieldReference, context: SelectionContext): ValueExpression {
  if (field.measure) return planMeasuredField(field, context);
  const { node, relations } = context;
  const selected = node.columns.find(
    (one) => one.field && one.aggregate === null && (one.alias ?? fieldOutputName(one.field)) === field.name,
  );
  if (selected?.field) {
    const value = planMeasuredField({ ...selected.field, path: [...selected.field.path, ...field.path] }, context);
    return selected.cast === null ? value : { kind: "cast", of: value, type: selected.cast };
  }
  const spread = relations.find((one) => one.spread && one.toOne && findColumnByName(one.columns, field));
  return spread ? lookupExpression(spread, field) : planOrderField(field, context);
}

function isSameField(left: FieldReference | null, right: FieldReference): boolean {
  return left?.name === right.name && JSON.stringify(left.path) === JSON.stringify(right.path);
}

function relationNotToOne(from: string, to: string): ApiError {
  return new ApiError("invalid", "PGRST118", `A related order on '${to}' is not possible`, {
    details: `'${from}' and '${to}' do not form a many-to-one or one-to-one relationship`,
  });
}
