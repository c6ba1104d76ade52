import { type CatalogTable, type DirectRelationship, mayRepeatKeys, type Relationship } from "#catalog";
import { ApiError } from "#runtime";
import { ALL_COLUMNS, type FieldReference, type SelectedRelation } from "../intent/intent.ts";
import type { KeptColumns } from "./plan.ts";
import { planCondition, planHaving } from "./plan-condition.ts";
import { planMeasuredField } from "./plan-measure.ts";
import { planOrdering, planRowField } from "./plan-order.ts";
import { planSelectedCount } from "./related-count.ts";
import { findRelationship, isToOne, type JoinedSource, joinRelationship } from "./relationship.ts";
import { refuseRepeatedFilters, refuseRepeatedFiltersIn } from "./repeated-filters.ts";
import {
  ALL_COLUMNS_ITEM,
  chooseAlias,
  fromSpreadOutput,
  type NamedSelectColumn,
  planSelectColumns,
  type SelectColumn,
  type SelectScope,
  toOutput,
  toSpreadOutput,
} from "./scope.ts";
import { type EmbedNode, embedName, findEmbed, makeSelectNode, type SelectNode } from "./select-tree.ts";
import {
  columnExpression,
  type OutputColumn,
  type SelectPlan,
  type SpreadJoin,
  type ValueExpression,
  type WherePredicate,
} from "./selection.ts";
import type { PlanContext, PlannedRelation, SelectionContext } from "./selection-context.ts";

/** Plans the requested rows with all embedded relations. */
export function planSelection(root: SelectNode, start: JoinedSource, planContext: PlanContext): SelectPlan {
  // `select=` selects all columns unless something is embedded.
  const isEmpty = root.columns.length === 0 && root.children.length === 0;
  const node = isEmpty ? { ...root, columns: [ALL_COLUMNS_ITEM] } : root;
  const context = makeSelectionContext(node, start.scope, planContext);
  const outputs = toOutputs(planColumns(context, { isSpread: false }));
  const selection = toSelectPlan(context, start, outputs, planContext.maxRows);
  refuseRepeatedFilters(selection);
  return selection;
}

/** Plans the conditions that choose rows to write. */
export function planConditions(node: SelectNode, scope: SelectScope, planContext: PlanContext): WherePredicate[] {
  const context: SelectionContext = { ...makeSelectionContext(node, scope, planContext), prefersColumns: true };
  const conditions = node.conditions.map((condition) => planCondition(condition, context));
  refuseRepeatedFiltersIn(conditions);
  return conditions;
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
  let planned: readonly SelectColumn[] | null = null;
  let plannedByName: ReadonlyMap<string, NamedSelectColumn> | null = null;
  const context: SelectionContext = {
    node,
    scope,
    relations,
    planContext,
    findRelation,
    findSelectedColumn,
    selectedOutputs: () => toOutputs(selectedColumns()).outputs,
    prefersColumns: false,
  };
  return context;

  function selectedColumns(): readonly SelectColumn[] {
    // Each term of an order may ask for them.
    planned ??= planColumns(context, { isSpread: false });
    return planned;
  }

  function findSelectedColumn(name: string): NamedSelectColumn | null {
    plannedByName ??= columnsByName(selectedColumns());
    return plannedByName.get(name) ?? null;
  }
}

/** A name that several columns have refers to the first. */
function columnsByName(columns: readonly SelectColumn[]): ReadonlyMap<string, NamedSelectColumn> {
  const named = columns.filter((one) => one.kind === "value");
  return new Map(named.toReversed().map((one) => [one.name, one]));
}

/** Rejects duplicate names, which would overwrite one another in the client's object, with Postgres's error, like PostgREST. */
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

/** A foreign key refers to at most one row; for a function, a view or a table with inherited rows this is not guaranteed. */
function relationLimit(relationship: Relationship, { catalog, maxRows }: PlanContext): number | null {
  if (!isToOne(relationship)) return maxRows;
  const target = catalog.findTable(relationship.target);
  return relationship.kind === "computed" || (target && mayRepeatKeys(target)) ? 1 : null;
}

function toEmbeddedColumn(branch: EmbedNode, toOne: boolean, from: SelectPlan): NamedSelectColumn {
  const value: ValueExpression = { kind: "embedded", form: toOne ? "object" : "array", from };
  return { kind: "value", name: embedName(branch), value, aggregate: null, isJson: true, field: null };
}

function planColumns(context: SelectionContext, { isSpread }: { readonly isSpread: boolean }): SelectColumn[] {
  const { node, scope, relations, planContext } = context;
  const related = relations.flatMap(({ columns }) => columns);
  const counts = new Map(node.columns.map((selected) => [selected, planSelectedCount(selected, context)]));
  const aggregated = [...node.columns.filter((selected) => !counts.get(selected)), ...related];
  const hasAggregate = aggregated.some(({ aggregate }) => aggregate);
  const { catalog, role, aggregates } = planContext;
  const expand = isSpread || hasAggregate || node.distinct.length > 0;
  const planMeasured = (field: FieldReference) => planMeasuredField(field, context);
  const options = { expand, planMeasured, scope, catalog, role, aggregates };
  const own = node.columns.flatMap((selected) => counts.get(selected) ?? planSelectColumns(selected, options));
  return [...own, ...related];
}

function toOutputs(columns: readonly SelectColumn[]): Pick<SelectPlan, "outputs" | "grouped"> {
  const grouped = columns.some((one) => one.kind === "value" && one.aggregate);
  return { outputs: columns.map((one) => (one.kind === "all" ? one : toOutput(one, { grouped }))), grouped };
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
    having: planGroupConditions(context, grouped),
    distinct: planDistinct(context, { outputs, grouped }),
    order: node.order.map((term) => planOrdering(term, context)),
    ...effectiveRange(node, maxRows),
  };
}

function planGroupConditions(context: SelectionContext, grouped: boolean): WherePredicate[] {
  const { having } = context.node;
  if (having.length > 0 && !grouped) throw havingWithoutAggregate();
  return having.map((condition) => planHaving(condition, context));
}

function planDistinct(
  context: SelectionContext,
  { outputs, grouped }: Pick<SelectPlan, "outputs" | "grouped">,
): ValueExpression[] {
  const { distinct } = context.node;
  if (distinct.length === 0) return [];
  if (grouped) throw distinctNotPossible("Aggregates group the rows already.");
  if (outputs.some(({ kind }) => kind === "all")) throw distinctNotPossible("The columns of the rows are not known.");
  return distinct.map((field) => planRowField(field, context));
}

function existsCondition({ subquery: selection }: PlannedRelation): WherePredicate {
  return { kind: "exists", negated: false, selection, and: [] };
}

/** True if nothing is selected: then the relation serves conditions only. */
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
  return { ...makeSelectNode([]), relation };
}

/** The range of a selection, limited to the maximum number of rows. */
export function effectiveRange({ range }: SelectNode, maxRows: number | null): Pick<SelectPlan, "offset" | "limit"> {
  return { offset: range?.offset ?? 0, limit: smallerLimit(range?.limit ?? null, maxRows) };
}

function smallerLimit(a: number | null, b: number | null): number | null {
  return a === null ? b : b === null ? a : Math.min(a, b);
}

function havingWithoutAggregate(): ApiError {
  return new ApiError("invalid", "PGRST189", "'having' needs an aggregate in 'select'", {
    details: "Conditions on groups concern rows that aggregates have grouped.",
    hint: "Filter rows by their columns, without 'having'.",
  });
}

function distinctNotPossible(details: string): ApiError {
  return new ApiError("invalid", "PGRST188", "'distinct' is not possible here", {
    details,
    hint: "Select columns without aggregates. To group rows, select the columns and an aggregate such as count().",
  });
}

function aggregatesInSpreadNotImplemented(): ApiError {
  return new ApiError("invalid", "PGRST127", "Feature not implemented", {
    details: "Aggregates are not implemented for one-to-many or many-to-many spreads.",
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
