import type { DirectRelationship } from "../../engine/catalog/relationships.ts";

/** How the planner is told which relation is meant: by the table and its constraint, or, to a table from itself, by the column. */
export function relationOf({ kind, source, target, constraint, columns }: DirectRelationship) {
  const isSelf = source.schema === target.schema && source.name === target.name;
  if (!isSelf) return { name: target.name, hint: constraint };
  const [pair] = columns;
  return kind === "one-to-many" ? { name: target.name, hint: pair!.target } : { name: pair!.source, hint: null };
}

/** In a condition there is one name: that of the column, or of the constraint where it has several. */
export function conditionName({ constraint, columns }: DirectRelationship): string {
  return columns.length === 1 ? columns[0]!.target : constraint;
}
