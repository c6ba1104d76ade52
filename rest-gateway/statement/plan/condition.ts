import { ApiError } from "../../../engine/errors.ts";
import type { Condition, Field, Operation, RowOperation } from "../intent.ts";
import { isTextToSearch, operatorSchemaOf, planField, readerOf, typeOf } from "./field.ts";
import { permissionOf } from "./permission.ts";
import { use } from "./scope.ts";
import type { Within } from "./select.ts";
import type { Where } from "./selection.ts";
import { findBranch } from "./tree.ts";

export function planCondition(condition: Condition, within: Within): Where {
  switch (condition.kind) {
    case "filter":
      return planFilter(condition, within);
    case "related": {
      const { selection, within: inside } = within.relate(condition.relation, condition.found);
      const and = [planCondition(condition.condition, inside)];
      return { kind: "exists", negated: condition.negated, selection, and };
    }
    case "row":
      return planRowOperation(condition.operation, condition.negated, within);
    default: {
      const parts = condition.conditions.map((part) => planCondition(part, within));
      return { kind: condition.kind, negated: condition.negated, parts };
    }
  }
}

function planFilter({ field, negated, operation }: Condition & { kind: "filter" }, within: Within): Where {
  const { scope, planning } = within;
  const isColumn = scope.columns.has(field.name) || scope.computed.has(field.name);
  const embedded = field.path.length === 0 && isEmbedded(field.name, within) && !(isColumn && within.columnsFirst);
  if (embedded && operation.kind === "is" && (operation.value === "null" || operation.value === "not_null")) {
    // `clients=is.null` asks for rows without any, and `not.is.null` for rows with some.
    const { selection } = within.relate(field.name);
    return { kind: "exists", negated: (operation.value === "null") !== negated, selection, and: [] };
  }
  if (embedded && !isColumn) throw badOperator(field);
  return planOperation(field, negated, operation, within, readerOf(field, scope, planning.catalog));
}

function planOperation(
  field: Field,
  negated: boolean,
  operation: Operation,
  { scope, planning }: Within,
  reader: string | null,
): Where {
  const left = planField(field, scope);
  const operatorSchema = field.path.length === 0 ? operatorSchemaOf(typeOf(field.name, scope), planning) : null;
  switch (operation.kind) {
    case "is":
      return { kind: "is", negated, left, value: operation.value };
    case "in":
      return { kind: "in", negated, left, operatorSchema, operand: { slot: planning.slotOf(operation), by: reader } };
    case "isdistinct":
      return { kind: "distinct", negated, left, operand: { slot: planning.slotOf(operation), by: null } };
    case "search": {
      const { operator, language } = operation;
      const operand = { slot: planning.slotOf(operation), by: null };
      return { kind: "search", negated, left, convert: isTextToSearch(field, scope), operator, language, operand };
    }
    case "compare": {
      const { operator, quantifier } = operation;
      const isPattern = operator === "like" || operator === "ilike";
      const operand = { slot: planning.slotOf(operation), by: isPattern ? null : reader };
      const isEquality = operator === "eq" || operator === "neq";
      const schema = isEquality ? operatorSchema : null;
      return { kind: "compare", negated, left, operator, operatorSchema: schema, quantifier, operand };
    }
  }
}

function planRowOperation(operation: RowOperation, negated: boolean, { scope, planning, outputs }: Within): Where {
  if (operation.kind === "permitted") {
    const text = scope.table ? permissionOf(planning.catalog, scope.table, planning.role, operation.command) : "false";
    return { kind: "permitted", negated, text };
  }
  const slot = planning.slotOf(operation);
  if (operation.kind === "digest") return { kind: "digest", negated, outputs: outputs(), slot };
  const key = (scope.table?.primaryKey ?? []).map((name) => ({ name, value: use(scope, name) }));
  return { kind: "found", negated, key, by: operation.by, slot };
}

function isEmbedded(name: string, { node }: Within): boolean {
  return findBranch(node, name, { legacyTargetNames: false }) !== undefined;
}

function badOperator({ name }: Field): ApiError {
  return new ApiError(400, "PGRST120", `Bad operator on the '${name}' embedded resource`, {
    details: "Only is null or not is null filters are allowed on embedded resources",
  });
}
