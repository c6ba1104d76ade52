import {
  type Catalog,
  type CatalogTable,
  type DirectRelationship,
  policyConditionSql,
  type Relationship,
} from "#catalog";
import { ApiError } from "#runtime";
import {
  ALL_COLUMNS,
  type FieldReference,
  type FilterOperation,
  type OrderTerm,
  type RowCondition,
  type RowOperation,
  type SelectedRelation,
} from "../intent.ts";
import type { BindParameter } from "./bind-parameters.ts";
import { operatorSchemaOf, schemaOfComparison } from "./operator-schema.ts";
import type { KeptColumns } from "./plan.ts";
import { findRelationship, isToOne, type JoinedSource, joinRelationship } from "./relationship.ts";
import {
  ALL_COLUMNS_ITEM,
  chooseAlias,
  fieldOutputName,
  filterReader,
  fromSpreadOutput,
  isPlainText,
  type NamedSelectColumn,
  needsTsvectorConversion,
  planField,
  planSelectColumns,
  refuseAggregateName,
  type SelectColumn,
  type SelectScope,
  toOutput,
  toSpreadOutput,
  typeOfField,
  useColumn,
} from "./scope.ts";
import {
  type EmbedNameRules,
  type EmbedNode,
  embedName,
  findEmbed,
  relationNotEmbedded,
  type SelectNode,
} from "./select-tree.ts";
import {
  columnExpression,
  type OrderExpression,
  type OutputColumn,
  type SelectPlan,
  type SpreadJoin,
  type ValueExpression,
  type WherePredicate,
} from "./selection.ts";

/** The context shared by all parts of one plan. */
export type PlanContext = EmbedNameRules & {
  readonly catalog: Catalog;
  readonly role: string;
  /** The schema of the request, in which relations are looked up. */
  readonly schema: string;
  /** Whether clients may use aggregates. */
  readonly aggregates: boolean;
  /** The maximum number of rows of a selection; null is no limit. */
  readonly maxRows: number | null;
  parameterFor(operation: FilterOperation | RowOperation): BindParameter;
};

/** What conditions and orders of one selection may refer to. */
type SelectionContext = {
  readonly node: SelectNode;
  readonly scope: SelectScope;
  readonly relations: readonly PlannedRelation[];
  readonly planContext: PlanContext;
  /** Finds the relation of this name in the select, or plans it if it is not selected. */
  findRelation(name: string, found?: DirectRelationship): PlannedRelation;
  /** The selected columns. */
  selectedOutputs(): readonly OutputColumn[];
  /** For writes: a name means the column, even if a relation is returned under that name. */
  readonly prefersColumns: boolean;
};

type PlannedRelation = {
  readonly branch: EmbedNode;
  readonly toOne: boolean;
  readonly context: SelectionContext;
  readonly subquery: SelectPlan;
  readonly spread: SpreadJoin | null;
  /** The columns that the parent row shows of it. */
  readonly columns: readonly NamedSelectColumn[];
};

/** Plans the requested rows with all embedded relations. */
export function planSelection(root: SelectNode, start: JoinedSource, planContext: PlanContext): SelectPlan {
  // `select=` selects all columns unless something is embedded.
  const isEmpty = root.columns.length === 0 && root.children.length === 0;
  const node = isEmpty ? { ...root, columns: [ALL_COLUMNS_ITEM] } : root;
  const context = makeSelectionContext(node, start.scope, planContext);
  return toSelectPlan(context, start, toOutputs(planColumns(context, { isSpread: false })), planContext.maxRows);
}

/** Plans the conditions that choose rows to write. */
export function planConditions(node: SelectNode, scope: SelectScope, planContext: PlanContext): WherePredicate[] {
  const context: SelectionContext = { ...makeSelectionContext(node, scope, planContext), prefersColumns: true };
  return node.conditions.map((condition) => planCondition(condition, context));
}

function makeSelectionContext(node: SelectNode, scope: SelectScope, planContext: PlanContext): SelectionContext {
  const takenAliases = new Set(scope.takenAliases);
  const relations = node.children.map((branch) => {
    const relation = planEmbeddedRelation(branch, { ...scope, takenAliases }, planContext);
    if (relation.spread) takenAliases.add(relation.spread.alias);
    return relation;
  });
  rejectDuplicateEmbeds(node, scope);
  const findRelation: SelectionContext["findRelation"] = (name, relationship) => {
    if (relationship) return planEmbeddedRelation(unselectedBranch(name, relationship), scope, planContext);
    const branch = findEmbed(node, name, planContext);
    return (
      relations.find((relation) => relation.branch === branch) ??
      planEmbeddedRelation(unselectedBranch(name), scope, planContext)
    );
  };
  const context: SelectionContext = {
    node,
    scope,
    relations,
    planContext,
    findRelation,
    selectedOutputs,
    prefersColumns: false,
  };
  return context;

  function selectedOutputs(): readonly OutputColumn[] {
    return toOutputs(planColumns(context, { isSpread: false })).outputs;
  }
}

/** Duplicate names would overwrite one another in the client's object: rejected with Postgres's error, as by PostgREST. */
function rejectDuplicateEmbeds({ children }: SelectNode, { name, depth }: SelectScope): void {
  const embedNames = children.filter((branch) => !branch.relation.spread && !isEmptyNode(branch)).map(embedName);
  const duplicate = embedNames.find((one, index) => embedNames.indexOf(one) < index);
  if (duplicate === undefined) return;
  throw new ApiError("invalid", "42712", `table name "${name}_${duplicate}_${depth + 1}" specified more than once`);
}

function planEmbeddedRelation(branch: EmbedNode, outer: SelectScope, planContext: PlanContext): PlannedRelation {
  const { name: target, hint, spread: isSpread, relationship: knownRelationship } = branch.relation;
  const { catalog, role, schema } = planContext;
  const wanted = { source: outer.table, sourceName: outer.name, schema, target, hint };
  const relationship = knownRelationship ?? findRelationship(wanted, catalog, role);
  const start = joinRelationship(relationship, outer, planContext);
  const context = makeSelectionContext(branch, start.scope, planContext);
  const ownColumns = planColumns(context, { isSpread });
  const maxRows = relationLimit(relationship, planContext);
  const toOne = isToOne(relationship);
  if (isEmptyNode(branch) || !isSpread) {
    const selection = toSelectPlan(context, start, toOutputs(ownColumns), maxRows);
    const columns = isEmptyNode(branch) ? [] : [toEmbeddedColumn(branch, toOne, selection)];
    return { branch, toOne, context, subquery: selection, spread: null, columns };
  }
  const namedColumns = ownColumns.filter((one) => one.kind === "value");
  if (!toOne && namedColumns.some(({ aggregate }) => aggregate)) throw aggregatesInSpreadNotImplemented();
  const selection = toSelectPlan(
    context,
    start,
    { outputs: namedColumns.map(toSpreadOutput), grouped: false },
    maxRows,
  );
  const alias = chooseAlias("spread", outer.depth + 1, outer.takenAliases);
  const spread: SpreadJoin = { alias, form: toOne ? "columns" : "arrays", subquery: selection };
  const columns = namedColumns.map((one, index) => fromSpreadOutput(one, index, spread));
  return { branch, toOne, context, subquery: selection, spread, columns };
}

/** A foreign key refers to at most one row; for a function or a view this is not guaranteed. */
function relationLimit(relationship: Relationship, { catalog, maxRows }: PlanContext): number | null {
  if (!isToOne(relationship)) return maxRows;
  const isView = catalog.findTable(relationship.target)?.kind.endsWith("view");
  return relationship.kind === "computed" || isView ? 1 : null;
}

function toEmbeddedColumn(branch: EmbedNode, toOne: boolean, from: SelectPlan): NamedSelectColumn {
  const value: ValueExpression = { kind: "embedded", form: toOne ? "object" : "array", from };
  return { kind: "value", name: embedName(branch), value, aggregate: null, isJson: true, field: null };
}

function planColumns(
  { node, scope, relations, planContext }: SelectionContext,
  { isSpread }: { readonly isSpread: boolean },
): SelectColumn[] {
  const related = relations.flatMap(({ columns }) => columns);
  const hasAggregate = [...node.columns, ...related].some(({ aggregate }) => aggregate);
  const { catalog, role, aggregates } = planContext;
  const options = { expand: isSpread || hasAggregate, scope, catalog, role, aggregates };
  return [...node.columns.flatMap((selected) => planSelectColumns(selected, options)), ...related];
}

function toOutputs(columns: readonly SelectColumn[]): Pick<SelectPlan, "outputs" | "grouped"> {
  const grouped = columns.some((one) => one.kind === "value" && one.aggregate);
  return { outputs: columns.map((one): OutputColumn => toOutput(one, { grouped })), grouped };
}

function toSelectPlan(
  context: SelectionContext,
  { scope, source, join }: JoinedSource,
  { outputs, grouped }: Pick<SelectPlan, "outputs" | "grouped">,
  maxRows: number | null,
): SelectPlan {
  const { node, relations } = context;
  const conditions = node.conditions.map((condition) => planCondition(condition, context));
  const innerJoins = relations.filter(({ branch }) => branch.relation.join === "inner").map(existsCondition);
  return {
    source,
    alias: scope.alias,
    outputs,
    spreads: relations.flatMap(({ spread }) => spread ?? []),
    where: [...join, ...conditions, ...innerJoins],
    grouped,
    order: node.order.map((term) => planOrdering(term, context)),
    ...effectiveRange(node, maxRows),
  };
}

function existsCondition({ subquery: selection }: PlannedRelation): WherePredicate {
  return { kind: "exists", negated: false, selection, and: [] };
}

/** Whether nothing is selected: the relation serves conditions only. */
function isEmptyNode({ columns, children }: SelectNode): boolean {
  return columns.length === 0 && children.every(isEmptyNode);
}

function unselectedBranch(name: string, relationship?: DirectRelationship): EmbedNode {
  const relation: SelectedRelation = {
    kind: "relation",
    name,
    alias: null,
    hint: null,
    ...(relationship && { relationship }),
    join: null,
    spread: false,
    select: [],
  };
  return { columns: [], children: [], conditions: [], order: [], range: null, relation };
}

/** The range of a selection, limited to the maximum number of rows. */
export function effectiveRange({ range }: SelectNode, maxRows: number | null): Pick<SelectPlan, "offset" | "limit"> {
  return { offset: range?.offset ?? 0, limit: smallerLimit(range?.limit ?? null, maxRows) };
}

function smallerLimit(a: number | null, b: number | null): number | null {
  return a === null ? b : b === null ? a : Math.min(a, b);
}

function aggregatesInSpreadNotImplemented(): ApiError {
  return new ApiError("invalid", "PGRST127", "Feature not implemented", {
    details: "Aggregates are not implemented for one-to-many or many-to-many spreads.",
  });
}

function planCondition(condition: RowCondition, context: SelectionContext): WherePredicate {
  switch (condition.kind) {
    case "filter":
      return planFilter(condition, context);
    case "related": {
      const { subquery: selection, context: relatedContext } = context.findRelation(
        condition.relation,
        condition.found,
      );
      const and = [planCondition(condition.condition, relatedContext)];
      return { kind: "exists", negated: condition.negated, selection, and };
    }
    case "row":
      return planRowOperation(condition.operation, condition.negated, context);
    default: {
      const parts = condition.conditions.map((part) => planCondition(part, context));
      return { kind: condition.kind, negated: condition.negated, parts };
    }
  }
}

function planFilter(
  { field, negated, operation }: RowCondition & { kind: "filter" },
  context: SelectionContext,
): WherePredicate {
  const { scope, planContext } = context;
  const isColumn = scope.columns.has(field.name) || scope.computed.has(field.name);
  const embedded =
    field.path.length === 0 && isEmbeddedRelation(field.name, context) && !(isColumn && context.prefersColumns);
  if (embedded && operation.kind === "is" && (operation.value === "null" || operation.value === "not_null")) {
    // `clients=is.null` selects parents without related rows, and `not.is.null` those with some.
    const { subquery: selection } = context.findRelation(field.name);
    return { kind: "exists", negated: (operation.value === "null") !== negated, selection, and: [] };
  }
  if (embedded && !isColumn) throw badEmbedOperator(field);
  return planOperation(field, negated, operation, context, filterReader(field, scope, planContext.catalog));
}

function planOperation(
  field: FieldReference,
  negated: boolean,
  operation: FilterOperation,
  { scope, planContext }: SelectionContext,
  reader: string | null,
): WherePredicate {
  const left = planField(field, scope);
  const operatorSchema = field.path.length === 0 ? operatorSchemaOf(typeOfField(field.name, scope), planContext) : null;
  switch (operation.kind) {
    case "is":
      return { kind: "is", negated, left, value: operation.value };
    case "in":
      return {
        kind: "in",
        negated,
        left,
        operatorSchema,
        operand: { parameter: planContext.parameterFor(operation), reader },
      };
    case "isdistinct":
      return {
        kind: "distinct",
        negated,
        left,
        operatorSchema,
        operand: { parameter: planContext.parameterFor(operation), reader: null },
      };
    case "search": {
      const { operator, language } = operation;
      const operand = { parameter: planContext.parameterFor(operation), reader: null };
      return {
        kind: "search",
        negated,
        left,
        convert: needsTsvectorConversion(field, scope),
        schema: isPlainText(field, scope) ? "pg_catalog" : null,
        operator,
        language,
        operand,
      };
    }
    case "compare": {
      const { operator, quantifier } = operation;
      const isPattern = operator === "like" || operator === "ilike";
      const operand = { parameter: planContext.parameterFor(operation), reader: isPattern ? null : reader };
      const schema = schemaOfComparison(operator, field, operatorSchema, scope);
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

function planOrdering({ field, relation, direction, nulls }: OrderTerm, context: SelectionContext): OrderExpression {
  const value = relation === null ? planOrderField(field, context) : planRelatedOrder(relation, field, context);
  return { value, direction, nulls };
}

function planOrderField(field: FieldReference, { scope, planContext }: SelectionContext): ValueExpression {
  refuseAggregateName(field.name, { scope, ...planContext });
  return planField(field, scope);
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
  if (!spread) return null;
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
  const { node, scope, relations } = context;
  const selected = node.columns.find(
    (one) => one.field && one.aggregate === null && (one.alias ?? fieldOutputName(one.field)) === field.name,
  );
  if (selected?.field) {
    const { name, path } = selected.field;
    const value = planField({ name, path: [...path, ...field.path] }, scope);
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

type ResultRowsPlan = { readonly rows: SelectPlan; readonly result: KeptColumns };

/** Plans the selection from the result of a write or a call; only the needed columns are kept there. */
export function planResultRows(
  tree: SelectNode,
  scope: SelectScope,
  table: CatalogTable | null,
  planContext: PlanContext,
): ResultRowsPlan {
  const type = table && { schema: table.schema, name: table.name };
  const inResult: SelectScope = { ...scope, composite: type && { type, columns: [...scope.columns.keys()] } };
  const rows = planSelection(tree, { scope: inResult, source: { kind: "result" }, join: [] }, planContext);
  const wholeRow = scope.usedNames.has(ALL_COLUMNS.name);
  const computed = [...scope.usedNames].filter((name) => scope.computed.has(name) && !scope.columns.has(name));
  const columns = [...scope.usedNames].filter((name) => scope.columns.has(name));
  return {
    // Computed values are in the result but are not columns of the table.
    rows:
      computed.length > 0
        ? { ...rows, outputs: rows.outputs.flatMap((output) => expandAllColumns(output, scope)) }
        : rows,
    result: { wholeRow, names: wholeRow ? computed : [...columns, ...computed] },
  };
}

function expandAllColumns(output: OutputColumn, { columns, alias }: SelectScope): OutputColumn[] {
  if (output.kind !== "all") return [output];
  return [...columns.keys()].map((name) => ({
    kind: "value",
    name,
    value: columnExpression(alias, name),
    isAggregate: false,
  }));
}
