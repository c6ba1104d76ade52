import { ApiError } from "../../../engine/errors.ts";
import type { Field, OrderTerm } from "../intent.ts";
import { planField } from "./field.ts";
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
function shownValue({ columns }: PlannedRelation, { name, path }: Field): Expression | null {
  const found = columns.find(
    (one) => one.field?.name === name && JSON.stringify(one.field.path) === JSON.stringify(path),
  );
  return found?.value ?? null;
}

function lookup({ selection, within }: PlannedRelation, field: Field): Expression {
  return { kind: "lookup", value: planField(field, within.scope), from: selection };
}

function notToOne(from: string, to: string): ApiError {
  return new ApiError(400, "PGRST118", `A related order on '${to}' is not possible`, {
    details: `'${from}' and '${to}' do not form a many-to-one or one-to-one relationship`,
  });
}
