import type { CatalogTable } from "#catalog";
import { ApiError } from "#runtime";
import type {
  RowCondition,
  RowSelection,
  SelectedColumn,
  SelectedRelation,
  SelectItem,
  WithEmbedPath,
} from "../intent/intent.ts";
import { findRelationship } from "./relationship.ts";
import { ALL_COLUMNS_ITEM, castTo, hasName, type NamedSelectColumn, type RowNames } from "./scope.ts";
import type { ValueExpression } from "./selection.ts";
import type { PlanContext, PlannedRelation, SelectionContext } from "./selection-context.ts";

/** `comments.count` is the number of related rows, unless the relation has a column of that name. */
const COUNT = "count";

type CountFilter = RowCondition & { readonly kind: "filter" };

/** The number of all related rows that meet the relation's conditions, independent of its range. */
export function countValue({ subquery }: PlannedRelation): ValueExpression {
  return { kind: "count", from: subquery };
}

export function isCountFilter(condition: RowCondition, related: RowNames): condition is CountFilter {
  return namesCount(condition) && !hasName(related, COUNT);
}

function namesCount(condition: RowCondition): condition is CountFilter {
  if (condition.kind !== "filter") return false;
  const { name, path, measure } = condition.field;
  return name === COUNT && path.length === 0 && !measure;
}

/** `comments.count()` in a select; null if it is an aggregate of a column. */
export function planSelectedCount(selected: SelectedColumn, context: SelectionContext): NamedSelectColumn | null {
  const { field, alias, cast, aggregate } = selected;
  if (aggregate?.name !== COUNT || aggregate.distinct || field === null || cast !== null) return null;
  if (field.name === ALL_COLUMNS_ITEM.field!.name || field.path.length > 0 || hasName(context.scope, field.name))
    return null;
  const relation = ifFound(() => context.findRelation(field.name));
  if (relation === null) return null;
  const value = castTo(countValue(relation), aggregate.cast);
  return { kind: "value", name: alias ?? COUNT, value, aggregate: null, isJson: false, field: null };
}

/** Conditions on the number of related rows belong to the rows that the relation is embedded in. */
export function placeCountConditions(
  selection: RowSelection,
  table: CatalogTable | null,
  context: PlanContext,
): RowSelection {
  const isPlaced = ({ path, value }: WithEmbedPath<RowCondition>) => path.length > 0 && namesCount(value);
  if (table === null || !selection.conditions.some(isPlaced)) return selection;
  const conditions = selection.conditions.map((placed) => {
    const { path, value } = placed;
    if (!isPlaced(placed) || !isCountedAt(path, selection.select, table, context)) return placed;
    const condition: RowCondition = { kind: "related", relation: path.at(-1)!, negated: false, condition: value };
    return { path: path.slice(0, -1), value: condition };
  });
  return { ...selection, conditions };
}

/** True if the relation at the path exists, and has no column named `count`. */
function isCountedAt(
  [name, ...below]: readonly string[],
  select: readonly SelectItem[],
  table: CatalogTable,
  context: PlanContext,
): boolean {
  const relations = select.filter((item) => item.kind === "relation");
  const embed =
    relations.find((item) => (item.alias ?? item.name) === name) ??
    (context.legacyTargetNames ? relations.find((item) => item.name === name) : undefined);
  const related = findRelatedTable(embed ?? { name: name!, hint: null }, table, context);
  if (related === null) return false;
  if (below.length > 0) return embed !== undefined && isCountedAt(below, embed.select, related, context);
  return !related.columns.has(COUNT) && !related.computedColumns.has(COUNT);
}

function findRelatedTable(
  { name: target, hint, relationship }: Pick<SelectedRelation, "name" | "hint" | "relationship">,
  source: CatalogTable,
  { catalog, role, schema }: PlanContext,
): CatalogTable | null {
  const wanted = { source, sourceName: source.name, schema, target, hint };
  const found = relationship ?? ifFound(() => findRelationship(wanted, catalog, role));
  return (found && catalog.findTable(found.target)) ?? null;
}

/** Null if there is no such relationship: then other meanings of the name are tried. */
function ifFound<T>(find: () => T): T | null {
  try {
    return find();
  } catch (error) {
    if (error instanceof ApiError && error.code === "PGRST200") return null;
    throw error;
  }
}
