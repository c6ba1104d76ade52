import { operatorSchemaOf, policyConditionSql } from "#catalog";
import { ApiError } from "#runtime";
import type { ComparisonName, FieldReference, FilterOperation, RowCondition, RowOperation } from "../intent/intent.ts";
import { schemaOfComparison } from "./comparison-operators.ts";
import { planMeasuredField } from "./plan-measure.ts";
import { planSearch } from "./plan-search.ts";
import { countValue, isCountFilter } from "./related-count.ts";
import {
  compositeTypeOf,
  filterReader,
  hasName,
  isPlainText,
  needsTsvectorConversion,
  planField,
  typeOfField,
  useColumn,
} from "./scope.ts";
import { findEmbed } from "./select-tree.ts";
import { findOutput, outputValue } from "./selected-output.ts";
import type { ValueExpression, WherePredicate } from "./selection.ts";
import type { PlanContext, SelectionContext } from "./selection-context.ts";

export function planCondition(condition: RowCondition, context: SelectionContext): WherePredicate {
  switch (condition.kind) {
    case "filter":
      return planFilter(condition, context);
    case "related":
      return planRelatedCondition(condition, context);
    case "row":
      return planRowOperation(condition.operation, condition.negated, context);
    case "search":
      return planSearch(condition, context);
    default: {
      const parts = condition.conditions.map((part) => planCondition(part, context));
      return { kind: condition.kind, negated: condition.negated, parts };
    }
  }
}

function planRelatedCondition(
  { relation, found, every, negated, condition }: RowCondition & { kind: "related" },
  context: SelectionContext,
): WherePredicate {
  const related = context.findRelation(relation, found);
  if (isCountFilter(condition, related.context.scope)) {
    const subject = valueSubject(countValue(related), "pg_catalog");
    return planOperation(subject, condition.negated !== negated, condition.operation, context.planContext);
  }
  const met = planCondition(condition, related.context);
  if (!every) return { kind: "exists", negated, selection: related.subquery, and: [met] };
  return { kind: "exists", negated: !negated, selection: related.subquery, and: [{ kind: "unmet", condition: met }] };
}

function planFilter(
  { field, negated, operation }: RowCondition & { kind: "filter" },
  context: SelectionContext,
): WherePredicate {
  const { scope, planContext } = context;
  const isColumn = hasName(scope, field.name);
  const embedded =
    field.path.length === 0 &&
    !field.measure &&
    isEmbeddedRelation(field.name, context) &&
    !(isColumn && context.prefersColumns);
  if (embedded && operation.kind === "is" && (operation.value === "null" || operation.value === "not_null")) {
    // `clients=is.null` selects parents without related rows, and `not.is.null` those with some.
    const { subquery: selection } = context.findRelation(field.name);
    return { kind: "exists", negated: (operation.value === "null") !== negated, selection, and: [] };
  }
  if (embedded && !isColumn) throw badEmbedOperator(field);
  return planOperation(fieldSubject(field, context), negated, operation, planContext);
}

/** The left operand of a filter, and the properties of its type that decide its operators. */
type FilterSubject = {
  readonly value: ValueExpression;
  /** The function that parses operands. */
  readonly reader: string | null;
  /** The type of composite values: otherwise Postgres infers an anonymous record, which it cannot read. */
  readonly compositeType: string | null;
  readonly operatorSchema: string | null;
  comparisonSchema(operator: ComparisonName): string | null;
  readonly isText: boolean;
  readonly needsTsvector: boolean;
};

function fieldSubject(field: FieldReference, context: SelectionContext): FilterSubject {
  if (field.measure) return valueSubject(planMeasuredField(field, context), null);
  const { scope, planContext } = context;
  const value = planField(field, scope);
  const operatorSchema = field.path.length === 0 ? operatorSchemaOf(typeOfField(field.name, scope), planContext) : null;
  return {
    value,
    reader: filterReader(field, scope, planContext.catalog),
    compositeType: compositeTypeOf(field, scope),
    operatorSchema,
    comparisonSchema: (operator) => schemaOfComparison(operator, field, operatorSchema, scope),
    isText: isPlainText(field, scope),
    needsTsvector: needsTsvectorConversion(field, scope),
  };
}

/** A value that is not a field, with the operators of a schema, or with those on the search path (null). */
function valueSubject(value: ValueExpression, operatorSchema: "pg_catalog" | null): FilterSubject {
  const comparisonSchema = () => operatorSchema;
  return {
    value,
    reader: null,
    compositeType: null,
    operatorSchema,
    comparisonSchema,
    isText: false,
    needsTsvector: true,
  };
}

/** A condition on the selected columns of grouped rows. */
export function planHaving(condition: RowCondition, context: SelectionContext): WherePredicate {
  switch (condition.kind) {
    case "filter": {
      const { field, negated, operation } = condition;
      const output = findOutput(field, context);
      if (output === null) throw havingNotSelected(field.name);
      const subject = output.field ? fieldSubject(output.field, context) : valueSubject(outputValue(output), null);
      return planOperation(subject, negated, operation, context.planContext);
    }
    case "and":
    case "or": {
      const parts = condition.conditions.map((part) => planHaving(part, context));
      return { kind: condition.kind, negated: condition.negated, parts };
    }
    case "related":
      throw havingNotSelected(condition.relation);
    case "row":
    case "search":
      throw havingNotSelected("*");
  }
}

function havingNotSelected(name: string): ApiError {
  return new ApiError("invalid", "PGRST189", `'${name}' in having is not a selected column`, {
    details: "Conditions on groups concern the columns and aggregates of 'select', by their names in the response.",
    hint: `Select it, or give it an alias in 'select'.`,
  });
}

function planOperation(
  { value: left, reader, compositeType, operatorSchema, comparisonSchema, isText, needsTsvector }: FilterSubject,
  negated: boolean,
  operation: FilterOperation,
  { parameterFor }: PlanContext,
): WherePredicate {
  const operandWith = (by: string | null) => ({ parameter: parameterFor(operation), reader: by, type: compositeType });
  switch (operation.kind) {
    case "is":
      return { kind: "is", negated, left, value: operation.value };
    case "in":
      return { kind: "in", negated, left, operatorSchema, operand: operandWith(reader) };
    case "isdistinct":
      return { kind: "distinct", negated, left, operatorSchema, operand: operandWith(null) };
    case "search": {
      const { operator, language } = operation;
      const schema = isText ? "pg_catalog" : null;
      const operand = operandWith(null);
      return { kind: "search", negated, left, convert: needsTsvector, schema, operator, language, operand };
    }
    case "compare": {
      const { operator, quantifier } = operation;
      const isPattern = operator === "like" || operator === "ilike";
      const operand = operandWith(isPattern ? null : reader);
      const schema = comparisonSchema(operator);
      return { kind: "compare", negated, left, operator, operatorSchema: schema, quantifier, operand };
    }
  }
}

function planRowOperation(
  operation: RowOperation,
  negated: boolean,
  { scope, planContext, selectedOutputs: outputs }: SelectionContext,
): WherePredicate {
  if (operation.kind === "permitted") {
    const text = scope.table
      ? policyConditionSql(planContext.catalog, scope.table, planContext.role, operation.command)
      : "false";
    return { kind: "permitted", negated, text };
  }
  const slot = planContext.parameterFor(operation);
  if (operation.kind === "digest") return { kind: "digest", negated, outputs: outputs(), parameter: slot };
  const key = (scope.table?.primaryKey ?? []).map((name) => ({ name, value: useColumn(scope, name) }));
  return { kind: "found", negated, key, by: operation.by, parameter: slot };
}

function isEmbeddedRelation(name: string, { node }: SelectionContext): boolean {
  return findEmbed(node, name, { legacyTargetNames: false }) !== undefined;
}

function badEmbedOperator({ name }: FieldReference): ApiError {
  return new ApiError("invalid", "PGRST120", `Bad operator on the '${name}' embedded resource`, {
    details: "Only is null or not is null filters are allowed on embedded resources",
  });
}
