import type { Catalog } from "../../../engine/catalog/catalog.ts";
import type { Relationship } from "../../../engine/catalog/relationships.ts";
import type { Table } from "../../../engine/catalog/tables.ts";
import { ApiError } from "../../../engine/errors.ts";
import { nearest } from "./near.ts";
import type { Wanted } from "./relation.ts";
import { isInSight, schemaOf } from "./relationship.ts";
import { maySee } from "./sight.ts";

const ALIKE = 0.33;

export function noRelationship(wanted: Wanted, catalog: Catalog, role: string): ApiError {
  const { sourceName, target, hint, schema } = wanted;
  const using = hint === null ? "" : `' using the hint '${hint}`;
  return new ApiError(
    400,
    "PGRST200",
    `Could not find a relationship between '${sourceName}' and '${target}' in the schema cache`,
    {
      details:
        `Searched for a foreign key relationship between '${sourceName}' and '${target}${using}' ` +
        `in the schema '${schema}', but no matches were found.`,
      hint: hintFor(wanted, catalog, role),
    },
  );
}

function hintFor(wanted: Wanted, catalog: Catalog, role: string): string | null {
  const { source, schema, target } = wanted;
  const related = source ? catalog.relationshipsOf(source).filter((other) => schemaOf(other) === schema) : [];
  // That there is a junction is not told, nor that the name of the source might be wrong.
  if (source && related.length === 0 && catalog.hiddenJunctions.has(source.oid)) return null;
  if (!source || related.length === 0) return hintForSource(wanted, catalog, role);
  const all = [...related, ...related.flatMap((there) => beyond(source, there, catalog))];
  const mayName = (known: string) =>
    all.some((other) => other.target.name === known && isInSight(other, catalog, role));
  const meant = nearest(target, [...new Set(all.map((other) => other.target.name))], { least: ALIKE, mayName });
  // It is known by that name: then it is the hint that is wrong.
  if (meant === null || meant.toLowerCase() === target.toLowerCase()) return null;
  return `Perhaps you meant '${meant}' instead of '${target}'.`;
}

function hintForSource({ sourceName, schema }: Wanted, catalog: Catalog, role: string): string | null {
  const tables = catalog.schemas.get(schema)?.tables ?? new Map<string, Table>();
  const others = [...tables.keys()].filter((name) => name !== sourceName);
  const mayName = (known: string) => {
    const table = tables.get(known)!;
    return maySee(catalog, role, table) && catalog.relationshipsOf(table).length > 0;
  };
  const meant = nearest(sourceName, others, { least: ALIKE, mayName });
  return meant && `Perhaps you meant '${meant}' instead of '${sourceName}'.`;
}

/** What a table that points to the source leads to, if it is a junction. */
function beyond(source: Table, there: Relationship, catalog: Catalog): Relationship[] {
  const junction = there.kind === "one-to-many" ? catalog.findTable(there.target) : undefined;
  if (!junction) return [];
  return catalog.relationshipsOf(junction).flatMap(({ kind, target }) => {
    const table = kind === "many-to-one" ? catalog.findTable(target) : undefined;
    if (!table) return [];
    return catalog.relationshipsBetween(source, table).filter((other) => other.kind === "many-to-many");
  });
}

export function ambiguous({ sourceName, target }: Wanted, choices: readonly Relationship[]): ApiError {
  const hints = choices.map((choice) => `'${choice.target.name}!${nameOf(choice)}'`).join(", ");
  return new ApiError(
    300,
    "PGRST201",
    `Could not embed because more than one relationship was found for '${sourceName}' and '${target}'`,
    {
      details: choices.map(describe),
      hint:
        `Try changing '${target}' to one of the following: ${hints}. ` +
        "Find the desired relationship in the 'details' key.",
    },
  );
}

function nameOf(relationship: Relationship): string {
  switch (relationship.kind) {
    case "many-to-many":
      return relationship.junction.name;
    case "computed":
      return relationship.routine.name;
    default:
      return relationship.constraint;
  }
}

function describe(relationship: Relationship): object {
  const { kind, source, target } = relationship;
  return { cardinality: kind, embedding: `${source.name} with ${target.name}`, relationship: spell(relationship) };
}

/** `films_director using films(director_id) and directors(id)` */
function spell(relationship: Relationship): string {
  const list = (names: readonly string[]) => `(${names.join(", ")})`;
  if (relationship.kind === "computed") return relationship.routine.name;
  if (relationship.kind === "many-to-many") {
    const { junction, sourceConstraint, targetConstraint, sourceColumns, targetColumns } = relationship;
    const ends = [
      sourceConstraint + list(sourceColumns.map((pair) => pair.junction)),
      targetConstraint + list(targetColumns.map((pair) => pair.junction)),
    ];
    return `${junction.name} using ${ends.join(" and ")}`;
  }
  const { constraint, source, target, columns } = relationship;
  const ends = [
    source.name + list(columns.map((pair) => pair.source)),
    target.name + list(columns.map((pair) => pair.target)),
  ];
  return `${constraint} using ${ends.join(" and ")}`;
}
