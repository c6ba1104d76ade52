import type { QualifiedName } from "../../../engine/catalog/qualified-name.ts";
import type { Table } from "../../../engine/catalog/tables.ts";
import { baseTypeOf } from "../../../engine/catalog/types.ts";
import type { OrderTerm, Page } from "../intent.ts";
import { type Step, waysBeyond } from "./beyond.ts";
import { typeOf } from "./field.ts";
import { MOST_ROWS } from "./long.ts";
import { foreignCursor, noPage, unreadableCursor } from "./page-refusals.ts";
import type { Result } from "./plan.ts";
import { planResult } from "./result.ts";
import { type Scope, tableScope } from "./scope.ts";
import { type Planning, planRows, windowOf } from "./select.ts";
import { column, type Output, type Selection, type Source, showing, type Where } from "./selection.ts";
import { completeOrder, hasNullsLast, isColumn, isDescending, nameOfOrder } from "./total-order.ts";
import type { Node } from "./tree.ts";

/** What a page by position has besides its rows. */
export type PagePlan = {
  /** What the cursors of this order bear. */
  readonly order: string;
  readonly isFirst: boolean;
  /** The rows there are, wherever the page begins. */
  readonly all: Selection;
};

type Ways = readonly (readonly Where[])[];

/** The rows of the page and the one behind them are kept and read twice: to be shown, and for where the next page begins. */
export function planReadPage(page: Page, { table, node }: { table: Table; node: Node }, planning: Planning) {
  const mayRead = (name: string) => planning.catalog.mayRole(planning.role, "select", table, name);
  const order = completeOrder(node.order, { table, mayRead });
  const limit = limitOf(node, planning);
  const ordered = { ...node, order, window: { offset: 0, limit } };
  const around = { alias: table.name, depth: 0, taken: new Set<string>() };
  const shown = planResult({ ...ordered, conditions: [] }, tableScope(table, around), table, planning);
  refuseGroups(shown.rows);

  const scope = tableScope(table, around);
  const source: Source = { kind: "table", name: { schema: table.schema, name: table.name }, through: null };
  const all = planRows(ordered, { scope, source, join: [] }, planning);
  const isNullable = (term: OrderTerm) => !isColumn(term) || table.columns.get(term.field.name)?.nullable !== false;
  const plan = { order: nameOfOrder("read", table, order), isFirst: page.kind === "first", all };
  const ways = waysFrom(page, plan, { order, scope, isNullable });
  const kept = { ...showing(outputsOf(shown.result, all.alias), all), limit: limit + 1 };
  return {
    rows: { ...shown.rows, where: [] },
    kept: ways.map((way) => ({ ...kept, where: [...kept.where, ...way] })),
    page: plan,
  };
}

type Called = { readonly routine: QualifiedName; readonly scope: Scope; readonly node: Node };

/** A function is called once, and all that it gives is kept. */
export function planCallPage(page: Page, { routine, scope, node }: Called, planning: Planning) {
  const order = completeOrder(node.order, { table: scope.table, mayRead: () => true });
  const ordered = { ...node, order, window: { offset: 0, limit: limitOf(node, planning) } };
  const { rows: all, result } = planResult(ordered, scope, scope.table, planning);
  refuseGroups(all);
  const plan = { order: nameOfOrder("call", routine, order), isFirst: page.kind === "first", all };
  // A function need not heed what holds for the rows of its table.
  const ways = waysFrom(page, plan, { order, scope, isNullable: () => true });
  return { rows: { ...all, where: [...all.where, ...either(ways)] }, result, page: plan };
}

/** Whoever asks for more rows gets as many as are put together at once, and where the others are. */
function limitOf(node: Node, { maxRows }: Planning): number {
  if ((node.window?.offset ?? 0) > 0) throw noPage("A cursor says where the page begins: offset cannot say it again.");
  if (!node.window?.limit) throw noPage("limit has to say how many rows a page has, and one at least.");
  return windowOf(node, Math.min(maxRows ?? MOST_ROWS, MOST_ROWS)).limit!;
}

function refuseGroups({ grouped }: Selection): void {
  if (grouped) throw noPage("Aggregates make rows that have no place among those of the table.");
}

type Ordered = {
  readonly order: readonly OrderTerm[];
  readonly scope: Scope;
  readonly isNullable: (term: OrderTerm) => boolean;
};

function waysFrom(page: Page, plan: PagePlan, ordered: Ordered): Ways {
  if (page.kind === "first") return [[]];
  if (page.kind === "unreadable") throw unreadableCursor();
  const { order, values } = page.position;
  if (order !== plan.order || values.length !== ordered.order.length) throw foreignCursor();
  const ways = waysBeyond(values.map((value, index) => stepAt(index, value === null, plan, ordered)));
  // Nobody was given a position that nothing can be behind.
  if (ways.length === 0) throw foreignCursor();
  return ways;
}

function stepAt(index: number, isNull: boolean, { all }: PagePlan, { order, scope, isNullable }: Ordered): Step {
  const term = order[index]!;
  return {
    value: all.order[index]!.value,
    descending: isDescending(term),
    nullsLast: hasNullsLast(term),
    nullable: isNullable(term),
    operand: isNull ? null : { slot: { kind: "position", index }, type: typeToName(term, scope) },
  };
}

/** That of a row, or of a number that stands for the name of something, Postgres would not find by itself. */
function typeToName(term: OrderTerm, scope: Scope): QualifiedName | null {
  const type = isColumn(term) ? typeOf(term.field.name, scope) : null;
  const base = type && baseTypeOf(type);
  const isNamed = base?.kind === "composite" || (base?.schema === "pg_catalog" && base.name.startsWith("reg"));
  return isNamed ? { schema: base.schema, name: base.name } : null;
}

function either(ways: Ways): readonly Where[] {
  if (ways.length === 1) return ways[0]!;
  const parts = ways.map((way): Where => (way.length === 1 ? way[0]! : { kind: "and", negated: false, parts: way }));
  return [{ kind: "or", negated: false, parts }];
}

function outputsOf({ wholeRow, names }: Result, alias: string): Output[] {
  const named = names.map((name): Output => ({ kind: "value", name, value: column(alias, name), isAggregate: false }));
  return wholeRow ? [{ kind: "all" }, ...named] : named;
}
