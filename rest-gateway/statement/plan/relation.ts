import type { Catalog } from "../../../engine/catalog/catalog.ts";
import type { Relationship } from "../../../engine/catalog/relationships.ts";
import type { Table } from "../../../engine/catalog/tables.ts";
import { ambiguous, noRelationship } from "./relation-refusals.ts";
import { isInSight, schemaOf } from "./relationship.ts";

/** Which relation is meant: `target` is a table, a constraint, a column or a function; `hint` tells several apart. */
export type Wanted = {
  readonly source: Table | null;
  /** What the source is called in refusals. */
  readonly sourceName: string;
  readonly schema: string;
  readonly target: string;
  readonly hint: string | null;
};

/** PostgREST's rules. Refuses what there is not (PGRST200) and what could be several (PGRST201, status 300). */
export function findRelationship(wanted: Wanted, catalog: Catalog, role: string): Relationship {
  const found = candidates(wanted, catalog).filter((relationship) => isMeant(relationship, wanted, catalog));
  if (found.length === 0) throw noRelationship(wanted, catalog, role);
  if (found.length === 1) return found[0]!;
  // What leads through tables of which the caller knows nothing is no choice of hers.
  const choices = found.filter((relationship) => isInSight(relationship, catalog, role));
  if (choices.length > 1) throw ambiguous(wanted, choices);
  return choices[0] ?? found[0]!;
}

function candidates({ source, schema, target }: Wanted, catalog: Catalog): Relationship[] {
  if (!source) return [];
  const named = catalog.findTable({ schema, name: target });
  const throughJunctions = named
    ? catalog.relationshipsBetween(source, named).filter(({ kind }) => kind === "many-to-many")
    : [];
  const direct = catalog.relationshipsOf(source).filter((relationship) => schemaOf(relationship) === schema);
  const exposed = throughJunctions.filter(
    (relationship) =>
      relationship.kind === "many-to-many" && catalog.schemas.get(relationship.junction.schema)?.exposed === true,
  );
  return [...direct, ...exposed];
}

function isMeant(relationship: Relationship, { target, hint }: Wanted, catalog: Catalog): boolean {
  if (relationship.kind === "computed") return relationship.routine.name === target;
  const isTarget = relationship.target.name === target;
  if (isSelf(relationship)) {
    // `children:people(*)` by the table, `boss_id(*)` by the column, `reports:people!boss_id(*)` by both.
    if (hint !== null) return isTarget && relationship.kind === "one-to-many" && hasFarColumn(relationship, hint);
    if (relationship.kind === "one-to-many") return isTarget;
    return relationship.kind === "many-to-one" && hasNearColumn(relationship, target);
  }
  if (hint !== null) {
    return (
      isTarget &&
      (hasConstraint(relationship, hint) ||
        hasNearColumn(relationship, hint) ||
        hasFarColumn(relationship, hint) ||
        (relationship.kind === "many-to-many" && relationship.junction.name === hint))
    );
  }
  if (isTarget) return true;
  // A view shares the constraints and columns of its table, and must be called by its own name.
  if (isView(relationship, catalog)) return false;
  return hasConstraint(relationship, target) || hasNearColumn(relationship, target);
}

function isSelf({ source, target }: Relationship): boolean {
  return source.name === target.name && source.schema === target.schema;
}

function isView({ target }: Relationship, catalog: Catalog): boolean {
  const kind = catalog.findTable(target)?.kind;
  return kind === "view" || kind === "materialized view";
}

function hasConstraint(relationship: Relationship, name: string): boolean {
  return "constraint" in relationship && relationship.constraint === name;
}

function hasNearColumn(relationship: Relationship, name: string): boolean {
  return "columns" in relationship && relationship.columns.length === 1 && relationship.columns[0]!.source === name;
}

function hasFarColumn(relationship: Relationship, name: string): boolean {
  return "columns" in relationship && relationship.columns.length === 1 && relationship.columns[0]!.target === name;
}
