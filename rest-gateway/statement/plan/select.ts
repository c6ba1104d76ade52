import type { Catalog } from "../../../engine/catalog/catalog.ts";
import type { DirectRelationship, Relationship } from "../../../engine/catalog/relationships.ts";
import { ApiError } from "../../../engine/errors.ts";
import type { Operation, RowOperation, SelectedRelation } from "../intent.ts";
import { ALL, type Column, fromSpread, type NamedColumn, toColumns, toOutput, toSpreadOutput } from "./columns.ts";
import { planCondition } from "./condition.ts";
import { planOrdering } from "./order.ts";
import { reach, type Start } from "./reach.ts";
import { findRelationship } from "./relation.ts";
import { isToOne } from "./relationship.ts";
import { pickAlias, type Scope } from "./scope.ts";
import type { Expression, Output, Selection, Spread, Where } from "./selection.ts";
import type { Slot } from "./slots.ts";
import { type Addressing, type Branch, findBranch, type Node, nameOf } from "./tree.ts";

/** What all parts of one plan are made with. */
export type Planning = Addressing & {
  readonly catalog: Catalog;
  readonly role: string;
  /** Relations are looked for in the schema of the request. */
  readonly schema: string;
  /** Whether clients may ask for aggregates. */
  readonly aggregates: boolean;
  /** No selection gives more rows; null is no limit. */
  readonly maxRows: number | null;
  slotOf(operation: Operation | RowOperation): Slot;
};

/** What the conditions and orders of one selection can speak of. */
export type Within = {
  readonly node: Node;
  readonly scope: Scope;
  readonly relations: readonly PlannedRelation[];
  readonly planning: Planning;
  /** The relation of this name in the select, or the one that it would be there. */
  relate(name: string, found?: DirectRelationship): PlannedRelation;
  /** What is selected of its rows. */
  outputs(): readonly Output[];
  /** Which rows are written is a question about their columns, even where a relation comes back under the name of one. */
  readonly columnsFirst: boolean;
};

export type PlannedRelation = {
  readonly branch: Branch;
  readonly toOne: boolean;
  readonly within: Within;
  readonly selection: Selection;
  readonly spread: Spread | null;
  /** What the rows around it show of it. */
  readonly columns: readonly NamedColumn[];
};

/** The rows asked for, with everything that is embedded in them. */
export function planRows(root: Node, start: Start, planning: Planning): Selection {
  // `select=` means everything, as long as nothing is embedded.
  const isEmpty = root.columns.length === 0 && root.children.length === 0;
  const node = isEmpty ? { ...root, columns: [ALL] } : root;
  const within = makeWithin(node, start.scope, planning);
  return toSelection(within, start, toRows(columnsOf(within, { isSpread: false })), planning.maxRows);
}

/** The conditions of rows that are not read but written. */
export function planConditions(node: Node, scope: Scope, planning: Planning): Where[] {
  const within = { ...makeWithin(node, scope, planning), columnsFirst: true };
  return node.conditions.map((condition) => planCondition(condition, within));
}

function makeWithin(node: Node, scope: Scope, planning: Planning): Within {
  const taken = new Set(scope.taken);
  const relations = node.children.map((branch) => {
    const relation = planRelation(branch, { ...scope, taken }, planning);
    if (relation.spread) taken.add(relation.spread.alias);
    return relation;
  });
  refuseSameNames(node, scope);
  const relate: Within["relate"] = (name, found) => {
    if (found) return planRelation(unselected(name, found), scope, planning);
    const branch = findBranch(node, name, planning);
    return relations.find((relation) => relation.branch === branch) ?? planRelation(unselected(name), scope, planning);
  };
  const within: Within = { node, scope, relations, planning, relate, outputs, columnsFirst: false };
  return within;

  function outputs(): readonly Output[] {
    return toRows(columnsOf(within, { isSpread: false })).outputs;
  }
}

/** One of them would be lost in the client's object: refused in the words of Postgres, as PostgREST's statement is. */
function refuseSameNames({ children }: Node, { name, depth }: Scope): void {
  const shown = children.filter((branch) => !branch.relation.spread && !isEmpty(branch)).map(nameOf);
  const again = shown.find((one, index) => shown.indexOf(one) < index);
  if (again === undefined) return;
  throw new ApiError(400, "42712", `table name "${name}_${again}_${depth + 1}" specified more than once`);
}

function planRelation(branch: Branch, from: Scope, planning: Planning): PlannedRelation {
  const { name: target, hint, spread: isSpread, found } = branch.relation;
  const { catalog, role, schema } = planning;
  const wanted = { source: from.table, sourceName: from.name, schema, target, hint };
  const relationship = found ?? findRelationship(wanted, catalog, role);
  const start = reach(relationship, from, planning);
  const within = makeWithin(branch, start.scope, planning);
  const own = columnsOf(within, { isSpread });
  const most = limitOf(relationship, planning);
  const toOne = isToOne(relationship);
  if (isEmpty(branch) || !isSpread) {
    const selection = toSelection(within, start, toRows(own), most);
    const columns = isEmpty(branch) ? [] : [toEmbedded(branch, toOne, selection)];
    return { branch, toOne, within, selection, spread: null, columns };
  }
  const named = own.filter((one) => one.kind === "value");
  if (!toOne && named.some(({ aggregate }) => aggregate)) throw aggregatesInSpread();
  const selection = toSelection(within, start, { outputs: named.map(toSpreadOutput), grouped: false }, most);
  const alias = pickAlias("spread", from.depth + 1, from.taken);
  const spread: Spread = { alias, form: toOne ? "columns" : "arrays", selection };
  const columns = named.map((one, index) => fromSpread(one, index, spread));
  return { branch, toOne, within, selection, spread, columns };
}

/** A foreign key leads to one row at most; that a function or a view does is only a promise. */
function limitOf(relationship: Relationship, { catalog, maxRows }: Planning): number | null {
  if (!isToOne(relationship)) return maxRows;
  const isView = catalog.findTable(relationship.target)?.kind.endsWith("view");
  return relationship.kind === "computed" || isView ? 1 : null;
}

function toEmbedded(branch: Branch, toOne: boolean, from: Selection): NamedColumn {
  const value: Expression = { kind: "embedded", form: toOne ? "object" : "array", from };
  return { kind: "value", name: nameOf(branch), value, aggregate: null, isJson: true, field: null };
}

function columnsOf(
  { node, scope, relations, planning }: Within,
  { isSpread }: { readonly isSpread: boolean },
): Column[] {
  const related = relations.flatMap(({ columns }) => columns);
  const hasAggregate = [...node.columns, ...related].some(({ aggregate }) => aggregate);
  const { catalog, aggregates } = planning;
  const wish = { expand: isSpread || hasAggregate, scope, catalog, aggregates };
  return [...node.columns.flatMap((selected) => toColumns(selected, wish)), ...related];
}

function toRows(columns: readonly Column[]): Pick<Selection, "outputs" | "grouped"> {
  const grouped = columns.some((one) => one.kind === "value" && one.aggregate);
  return { outputs: columns.map((one): Output => toOutput(one, { grouped })), grouped };
}

function toSelection(
  within: Within,
  { scope, source, join }: Start,
  { outputs, grouped }: Pick<Selection, "outputs" | "grouped">,
  most: number | null,
): Selection {
  const { node, relations } = within;
  const conditions = node.conditions.map((condition) => planCondition(condition, within));
  const inner = relations.filter(({ branch }) => branch.relation.join === "inner").map(exists);
  return {
    source,
    alias: scope.alias,
    outputs,
    spreads: relations.flatMap(({ spread }) => spread ?? []),
    where: [...join, ...conditions, ...inner],
    grouped,
    order: node.order.map((term) => planOrdering(term, within)),
    ...windowOf(node, most),
  };
}

function exists({ selection }: PlannedRelation): Where {
  return { kind: "exists", negated: false, selection, and: [] };
}

/** Nothing of it is in the answer: it is there for conditions alone. */
function isEmpty({ columns, children }: Node): boolean {
  return columns.length === 0 && children.every(isEmpty);
}

function unselected(name: string, found?: DirectRelationship): Branch {
  const relation: SelectedRelation = {
    kind: "relation",
    name,
    alias: null,
    hint: null,
    ...(found && { found }),
    join: null,
    spread: false,
    select: [],
  };
  return { columns: [], children: [], conditions: [], order: [], window: null, relation };
}

/** How many rows a window leaves, where no selection gives more than so many. */
export function windowOf({ window }: Node, most: number | null): Pick<Selection, "offset" | "limit"> {
  return { offset: window?.offset ?? 0, limit: least(window?.limit ?? null, most) };
}

function least(a: number | null, b: number | null): number | null {
  return a === null ? b : b === null ? a : Math.min(a, b);
}

function aggregatesInSpread(): ApiError {
  return new ApiError(400, "PGRST127", "Feature not implemented", {
    details: "Aggregates are not implemented for one-to-many or many-to-many spreads.",
  });
}
