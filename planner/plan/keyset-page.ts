import { baseTypeOf, type CatalogTable, type DataType, operatorSchemaOfRows, type QualifiedName } from "#catalog";
import { ApiError } from "#runtime";
import type { CursorPage, OrderTerm } from "../intent/intent.ts";
import {
  cursorMismatch,
  hasNullsLast,
  isDescending,
  operandsOf,
  orderFingerprint,
  orderOfShape,
} from "./keyset-order.ts";
import { type KeptColumns, type KeysetPlan, MAX_BUFFERED_ROWS } from "./plan.ts";
import { effectiveRange, planResultRows, planSelection } from "./plan-selection.ts";
import { type SelectScope, tableScope, typeOfField } from "./scope.ts";
import type { SelectNode } from "./select-tree.ts";
import {
  columnExpression,
  type OutputColumn,
  type PositionOperand,
  type RowSource,
  type SelectPlan,
  type ValueExpression,
  type WherePredicate,
  withOutputs,
} from "./selection.ts";
import type { PlanContext } from "./selection-context.ts";

type KeysetRanges = readonly (readonly WherePredicate[])[];

/** The rows of the page and the next row are materialized and read twice: for the response and for the next cursor. */
export function planReadPage(
  page: CursorPage,
  { table, node: tree }: { table: CatalogTable; node: SelectNode },
  context: PlanContext,
) {
  const mayRead = (name: string) => context.catalog.hasPrivilege(context.role, "select", table, name);
  const order = completeOrder(tree.order, { table, mayRead });
  const limit = pageLimit(tree, context);
  const orderedTree = { ...tree, order, range: { offset: 0, limit } };
  const outer = { alias: table.name, depth: 0, takenAliases: new Set<string>() };
  // A search decides which text the rank concerns.
  const searches = tree.conditions.filter(({ kind }) => kind === "search");
  const resultTree = { ...orderedTree, conditions: searches };
  const result = planResultRows(resultTree, tableScope(table, outer, context), table, context);
  rejectGroupedRows(result.rows);

  const scope = tableScope(table, outer, context);
  const source: RowSource = { kind: "table", name: { schema: table.schema, name: table.name }, through: null };
  const all = planSelection(orderedTree, { scope, source, join: [] }, context);
  const isNullable = (term: OrderTerm) =>
    !isPlainColumn(term) || table.columns.get(term.field.name)?.nullable !== false;
  const plan = planKeyset(page, orderFingerprint("read", table, order), all);
  const ranges = planKeysetRanges(page, plan, { order, scope, isNullable });
  const kept = { ...withOutputs(keptOutputs(result.result, all.alias), all), limit: limit + 1 };
  return {
    rows: { ...result.rows, where: [] },
    kept: ranges.map((range) => ({ ...kept, where: [...kept.where, ...range] })),
    page: plan,
  };
}

type CalledRoutine = { readonly routine: QualifiedName; readonly scope: SelectScope; readonly node: SelectNode };

/** The function is called once, and its whole result is materialized. */
export function planCallPage(page: CursorPage, { routine, scope, node: tree }: CalledRoutine, context: PlanContext) {
  const order = completeOrder(tree.order, { table: scope.table, mayRead: () => true });
  const orderedTree = { ...tree, order, range: { offset: 0, limit: pageLimit(tree, context) } };
  const { rows: all, result } = planResultRows(orderedTree, scope, scope.table, context);
  rejectGroupedRows(all);
  const plan = planKeyset(page, orderFingerprint("call", routine, order), all);
  // The constraints of a table do not apply to rows that a function returns.
  const ranges = planKeysetRanges(page, plan, { order, scope, isNullable: () => true });
  return { rows: { ...all, where: [...all.where, ...anyOf(ranges)] }, result, page: plan };
}

function planKeyset(page: CursorPage, order: string, all: SelectPlan): KeysetPlan {
  return { order, operands: [...new Set(operandsOf(all.order))], isFirst: page.kind === "first", all };
}

/** A page is limited to the number of rows that may be buffered, with a cursor for the next one. */
function pageLimit(tree: SelectNode, { maxRows }: PlanContext): number {
  if ((tree.range?.offset ?? 0) > 0)
    throw cursorNotPossible("A cursor says where the page begins: offset cannot say it again.");
  if (!tree.range?.limit) throw cursorNotPossible("limit has to say how many rows a page has, and one at least.");
  return effectiveRange(tree, Math.min(maxRows ?? MAX_BUFFERED_ROWS, MAX_BUFFERED_ROWS)).limit!;
}

function rejectGroupedRows({ grouped, distinct }: SelectPlan): void {
  if (distinct.length > 0) throw cursorNotPossible("Rows that distinct leaves out would be on later pages.");
  if (grouped) throw cursorNotPossible("Aggregates make rows that have no place among those of the table.");
}

type OrderContext = {
  readonly order: readonly OrderTerm[];
  readonly scope: SelectScope;
  readonly isNullable: (term: OrderTerm) => boolean;
};

function planKeysetRanges(page: CursorPage, plan: KeysetPlan, orderedTree: OrderContext): KeysetRanges {
  if (page.kind === "first") return [[]];
  if (page.kind === "unreadable") throw invalidCursor();
  const { values } = page.position;
  if (orderOfShape(page.position) !== plan.order || values.length !== orderedTree.order.length) throw cursorMismatch();
  const ranges = keysetPredicate(values.map((value, index) => keysetStep(index, value === null, plan, orderedTree)));
  // No page ends at a position without rows after it, so the cursor was not issued here.
  if (ranges.length === 0) throw cursorMismatch();
  return ranges;
}

function keysetStep(
  index: number,
  isNull: boolean,
  { all }: KeysetPlan,
  { order, scope, isNullable }: OrderContext,
): KeysetStep {
  const term = order[index]!;
  return {
    value: all.order[index]!.value,
    descending: isDescending(term),
    nullsLast: hasNullsLast(term),
    nullable: isNullable(term),
    type: isPlainColumn(term) ? typeOfField(term.field.name, scope) : null,
    operand: isNull ? null : { parameter: { kind: "position", index }, type: castTypeOf(term, scope) },
  };
}

/** The cast for composite types and `reg…` types, which Postgres cannot infer; null for others. */
function castTypeOf(term: OrderTerm, scope: SelectScope): QualifiedName | null {
  const type = isPlainColumn(term) ? typeOfField(term.field.name, scope) : null;
  const base = type && baseTypeOf(type);
  const isNamed = base?.kind === "composite" || (base?.schema === "pg_catalog" && base.name.startsWith("reg"));
  return isNamed ? { schema: base.schema, name: base.name } : null;
}

function anyOf(ranges: KeysetRanges): readonly WherePredicate[] {
  if (ranges.length === 1) return ranges[0]!;
  const parts = ranges.map(
    (range): WherePredicate => (range.length === 1 ? range[0]! : { kind: "and", negated: false, parts: range }),
  );
  return [{ kind: "or", negated: false, parts }];
}

function keptOutputs({ wholeRow, names }: KeptColumns, alias: string): OutputColumn[] {
  const named = names.map(
    (name): OutputColumn => ({ kind: "value", name, value: columnExpression(alias, name), isAggregate: false }),
  );
  return wholeRow ? [{ kind: "all" }, ...named] : named;
}

/** One value of the order, and the value at which the previous page ended. */
type KeysetStep = {
  readonly value: ValueExpression;
  readonly descending: boolean;
  readonly nullsLast: boolean;
  readonly nullable: boolean;
  /** Null if it is unknown. */
  readonly type: DataType | null;
  /** Null if the row's value was null. */
  readonly operand: PositionOperand | null;
};

/**
 * The disjoint cases in which a row follows the position. Each is one range of an index with the same order, so none
 * reads from the first row.
 */
function keysetPredicate(steps: readonly KeysetStep[]): readonly (readonly WherePredicate[])[] {
  const [first] = steps;
  if (!first) return [];
  if (first.operand === null) {
    const alsoNull = keysetPredicate(steps.slice(1)).map((range) => [isNullStep(first), ...range]);
    return first.nullsLast ? alsoNull : [[{ kind: "presence", left: first.value, present: true }], ...alsoNull];
  }
  const run = comparableSteps(steps);
  const after = compareRows(first.descending ? "lt" : "gt", run);
  const atNull = run.flatMap((step, index) =>
    step.nullable && step.nullsLast ? [[...equalTo(run.slice(0, index)), isNullStep(step)]] : [],
  );
  const afterEqual = keysetPredicate(steps.slice(run.length)).map((range) => [...equalTo(run), ...range]);
  return [[after], ...atNull, ...afterEqual];
}

/** The leading steps that one row comparison covers: non-null, and all in the same direction. */
function comparableSteps(steps: readonly KeysetStep[]): readonly KeysetStep[] {
  const end = steps.findIndex(({ operand, descending }) => operand === null || descending !== steps[0]!.descending);
  return end < 0 ? steps : steps.slice(0, end);
}

function equalTo(steps: readonly KeysetStep[]): WherePredicate[] {
  return steps.length > 0 ? [compareRows("eq", steps)] : [];
}

function compareRows(operator: "eq" | "gt" | "lt", steps: readonly KeysetStep[]): WherePredicate {
  return {
    kind: "position",
    left: steps.map(({ value }) => value),
    operator,
    operatorSchema: operatorSchemaOfRows(steps.map(({ type }) => type)),
    right: steps.map(({ operand }) => operand!),
  };
}

function isNullStep({ value: left }: KeysetStep): WherePredicate {
  return { kind: "presence", left, present: false };
}

type OrderedRows = {
  /** Null if the rows are not of a table. */
  readonly table: CatalogTable | null;
  readonly mayRead: (column: string) => boolean;
};

/** The client's order, extended by a key so that it is total. It stays unchanged if there is no key. */
function completeOrder(order: readonly OrderTerm[], { table, mayRead }: OrderedRows): readonly OrderTerm[] {
  const named = new Set(order.filter(isPlainColumn).map(({ field }) => field.name));
  const keys = (table ? uniqueKeysOf(table) : []).filter((key) => key.every(mayRead));
  if (keys.some((key) => key.every((name) => named.has(name)))) return order;
  const [key = []] = keys;
  if (order.length === 0 && key.length === 0) throw orderNotTotal("There is no order, and no key that could be one.");
  // The key has the direction of the last term, so that one index can serve both.
  const direction = order.at(-1)?.direction ?? null;
  const more = key.filter((name) => !named.has(name)).map((name) => ({ field: { name, path: [] }, direction }));
  return [...order, ...more.map((term) => ({ ...term, relation: null, nulls: null }))];
}

function isPlainColumn({ field, relation, by }: OrderTerm): boolean {
  return relation === null && by === undefined && field.path.length === 0 && field.measure === undefined;
}

/** The unique keys, the primary key first. A view's key need not be unique: a join can repeat the table's rows. */
function uniqueKeysOf({ primaryKey, uniqueKeys, columns }: CatalogTable): readonly (readonly string[])[] {
  const isNeverNull = (name: string) => columns.get(name)?.nullable === false;
  const others = uniqueKeys.filter((key) => key.predicate === null && key.columns.every(isNeverNull));
  return [...(primaryKey.length > 0 ? [primaryKey] : []), ...others.map((key) => key.columns)];
}

function invalidCursor(): ApiError {
  return new ApiError("invalid", "PGRST190", "The cursor cannot be read", {
    details: "It was cut off or changed, or it is not a cursor of this interface.",
    hint: "Take it from the Link header of the page before, as it is; an empty cursor gives the first page.",
  });
}

export function cursorNotPossible(details: string): ApiError {
  return new ApiError("invalid", "PGRST192", "A cursor is not possible here", { details });
}

/** The error for rows with equal order values: the cursor could not tell which were on the previous page. */
export function orderNotTotal(details: string): ApiError {
  return new ApiError("invalid", "PGRST193", "The order does not tell all rows apart", {
    details,
    hint: "Order by columns that are never the same in two rows.",
  });
}
