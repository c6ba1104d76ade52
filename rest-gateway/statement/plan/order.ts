import { ApiError } from "../../../engine/errors.ts";
import type { Field, OrderTerm } from "../intent.ts";
import type { NamedColumn } from "./columns.ts";
import { outputName, planField } from "./field.ts";
import type { PlannedRelation, Within } from "./select.ts";
import type { Expression, Ordering } from "./selection.ts";
import { nameOf, notEmbedded } from "./tree.ts";

export function planOrdering({ field, relation, direction, nulls }: OrderTerm, within: Within): Ordering {
  const value = relation === null ? planField(field, within.scope) : relatedValue(relation, field, within);
  return { value, direction, nulls };
}

function relatedValue(name: string, field: Field, { scope, relations }: Within): Expression {
  const related = relations.find(({ branch }) => nameOf(branch) === name);
  if (!related) throw notEmbedded(name);
  if (!related.toOne) throw notToOne(scope.name, name);
  return shownValue(related, field) ?? lookup(related, field);
}

/** Where rows are grouped, they can be ordered by a spread column only as that column. */
function shownValue({ spread, columns }: PlannedRelation, field: Field): Expression | null {
  if (!spread) return null;
  return (findNamed(columns, field) ?? columns.find((one) => isSame(one.field, field)))?.value ?? null;
}

function lookup({ selection, within }: PlannedRelation, field: Field): Expression {
  return { kind: "lookup", value: selectedValue(field, within), from: selection };
}

function findNamed(columns: readonly NamedColumn[], { name, path }: Field): NamedColumn | undefined {
  return path.length === 0 ? columns.find((one) => one.aggregate === null && one.name === name) : undefined;
}

/** A name is first the one that something has in the answer, and then that of a column. */
function selectedValue(field: Field, { node, scope, relations }: Within): Expression {
  const selected = node.columns.find(
    (one) => one.field && one.aggregate === null && (one.alias ?? outputName(one.field)) === field.name,
  );
  if (selected?.field) {
    const { name, path } = selected.field;
    const value = planField({ name, path: [...path, ...field.path] }, scope);
    return selected.cast === null ? value : { kind: "cast", of: value, type: selected.cast };
  }
  const spread = relations.find((one) => one.spread && one.toOne && findNamed(one.columns, field));
  return spread ? lookup(spread, field) : planField(field, scope);
}

function isSame(left: Field | null, right: Field): boolean {
  return left?.name === right.name && JSON.stringify(left.path) === JSON.stringify(right.path);
}

function notToOne(from: string, to: string): ApiError {
  return new ApiError(400, "PGRST118", `A related order on '${to}' is not possible`, {
    details: `'${from}' and '${to}' do not form a many-to-one or one-to-one relationship`,
  });
}
