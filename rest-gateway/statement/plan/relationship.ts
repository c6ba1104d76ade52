import type { Catalog } from "../../../engine/catalog/catalog.ts";
import type { Relationship } from "../../../engine/catalog/relationships.ts";
import { maySee } from "./sight.ts";

export function isToOne(relationship: Relationship): boolean {
  switch (relationship.kind) {
    case "many-to-one":
    case "one-to-one":
      return true;
    case "computed":
      return relationship.toOne;
    default:
      return false;
  }
}

/** A computed relationship belongs to the schema of its function. */
export function schemaOf(relationship: Relationship): string {
  return relationship.kind === "computed" ? relationship.routine.schema : relationship.target.schema;
}

/** Whether the role may be told of it: of its target, and of the table that leads there. */
export function isInSight(relationship: Relationship, catalog: Catalog, role: string): boolean {
  const tables = [relationship.target, ...(relationship.kind === "many-to-many" ? [relationship.junction] : [])];
  return tables.every((name) => {
    const table = catalog.findTable(name);
    return table !== undefined && maySee(catalog, role, table);
  });
}
