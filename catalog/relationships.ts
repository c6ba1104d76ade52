import { memoize } from "#runtime";
import type { ConstraintRow } from "./constraints.ts";
import { baseTypeOf, type QualifiedName } from "./data-types.ts";
import type { Routine } from "./routines.ts";
import type { CatalogTable } from "./tables.ts";
import type { ViewColumnSources } from "./view-columns.ts";

type RelatedTables = {
  readonly source: QualifiedName;
  readonly target: QualifiedName;
};

/** A relationship by a foreign key, from either of its tables to the other. */
export type DirectRelationship = RelatedTables & {
  readonly kind: "many-to-one" | "one-to-many" | "one-to-one";
  readonly constraint: string;
  readonly columns: readonly ColumnPair[];
  /** The table that has the foreign key: the source in many-to-one, the target in one-to-many. */
  readonly keyAt: "source" | "target";
};

/** Returns the relationship by the same foreign key in the other direction. */
export function reverseRelationship(relationship: DirectRelationship): DirectRelationship {
  const { kind, source, target, columns, keyAt } = relationship;
  return {
    ...relationship,
    kind: kind === "one-to-one" ? kind : kind === "many-to-one" ? "one-to-many" : "many-to-one",
    source: target,
    target: source,
    columns: columns.map((pair) => ({ source: pair.target, target: pair.source })),
    keyAt: OTHER_SIDE[keyAt],
  };
}

/** A relationship through a junction table: by two foreign keys within its primary key. */
type JunctionRelationship = RelatedTables & {
  readonly kind: "many-to-many";
  readonly junction: QualifiedName;
  readonly sourceConstraint: string;
  readonly targetConstraint: string;
  readonly sourceColumns: readonly { readonly source: string; readonly junction: string }[];
  readonly targetColumns: readonly { readonly junction: string; readonly target: string }[];
};

/** A relationship by a function that takes a row and returns rows of another table. */
export type ComputedRelationship = RelatedTables & {
  readonly kind: "computed";
  readonly routine: Routine;
  readonly toOne: boolean;
};

export type Relationship = DirectRelationship | JunctionRelationship | ComputedRelationship;
export type ColumnPair = { readonly source: string; readonly target: string };

/** A foreign key between stored tables, by column numbers. */
type StoredForeignKey = {
  readonly name: string;
  readonly unique: boolean;
  readonly source: StoredColumns;
  readonly target: StoredColumns;
};
type StoredColumns = { readonly table: number; readonly columns: readonly number[] };

/** A table or view that shows a stored table, with the names that the stored columns have in it. */
type TableProjection = { readonly table: CatalogTable; namesOf(position: number): readonly string[] };

type TableProjections = {
  /** The exposed tables and views that show a stored table. */
  of(stored: number): readonly TableProjection[];
  /** The stored tables that a table or view shows. */
  storedTablesIn(table: CatalogTable): readonly { readonly stored: number; readonly surface: TableProjection }[];
};

export type Relationships = {
  /** Relationships by foreign keys of the table, by foreign keys that refer to it, and by functions of its rows. */
  relationshipsOf(table: CatalogTable): readonly (DirectRelationship | ComputedRelationship)[];
  /** Relationships by the table's own foreign keys only; cheaper, because many others may refer to the table. */
  referencesFrom(table: CatalogTable): readonly DirectRelationship[];
  /** All relationships from one table to another, including those through junction tables. */
  relationshipsBetween(source: CatalogTable, target: CatalogTable): readonly Relationship[];
};

type RelationshipSources = {
  readonly keys: readonly StoredForeignKey[];
  readonly projections: TableProjections;
  readonly isExposed: (name: QualifiedName) => boolean;
  readonly findTable: (name: QualifiedName) => CatalogTable | undefined;
};

/** One side of a foreign key, as a table or view shows it. */
type ForeignKeyEnd = { readonly table: CatalogTable; readonly names: readonly string[] };
type ForeignKeySide = "source" | "target";

const OTHER_SIDE = { source: "target", target: "source" } as const;

/**
 * Relationships are computed on demand, and those through junctions only between two given tables, because views multiply them
 * (35,544 for 45 tables and 281 views in PostgREST's pull request 2262; half a million from one table among 5,000
 * views), and few are ever used.
 */
export function makeRelationships({ keys, projections, isExposed, findTable }: RelationshipSources): Relationships {
  const keysAt = {
    source: Map.groupBy(keys, ({ source }) => source.table),
    target: Map.groupBy(keys, ({ target }) => target.table),
  };
  const endsOf = ({ table, columns }: StoredColumns): ForeignKeyEnd[] =>
    projections
      .of(table)
      .flatMap((projection) =>
        nameCombinations(projection, columns).map((names) => ({ table: projection.table, names })),
      );
  const endsAt = {
    source: memoize((key: StoredForeignKey) => endsOf(key.source)),
    target: memoize((key: StoredForeignKey) => endsOf(key.target)),
  };

  const directRelationships: FindDirectRelationships = (table, side, only) =>
    projections.storedTablesIn(table).flatMap(({ stored, surface: projection }) =>
      (keysAt[side].get(stored) ?? []).flatMap((key) => {
        const ends = endsAt[OTHER_SIDE[side]](key).filter((end) => !only || end.table === only);
        return nameCombinations(projection, key[side].columns).flatMap((names) =>
          ends.map((end) => toDirectRelationship(key, side, { table, names }, end)),
        );
      }),
    );

  const computed = memoize((table: CatalogTable) => toComputedRelationships(table, isExposed));
  /** A function with the name of a table overrides the relationships by foreign keys to that table. */
  const isOverridden = (source: CatalogTable, target: QualifiedName) =>
    computed(source).some(({ routine }) => isSame(routine, target));

  const detected = (table: CatalogTable, side: ForeignKeySide) =>
    directRelationships(table, side).filter(({ target }) => !isOverridden(table, target));
  const referencesFrom = memoize((table: CatalogTable) => detected(table, "source").sort(compareRelationships));
  const relationshipsOf = memoize((table: CatalogTable) =>
    [...referencesFrom(table), ...detected(table, "target"), ...computed(table)].sort(compareRelationships),
  );

  return {
    relationshipsOf,
    referencesFrom,
    relationshipsBetween(source, target) {
      const ofSource = relationshipsOf(source).filter((relationship) => isSame(relationship.target, target));
      return isOverridden(source, target)
        ? ofSource
        : [...ofSource, ...throughJunctions(source, target, directRelationships, findTable)].sort(compareRelationships);
    },
  };
}

/** Relationships by foreign keys with one side at the table, to all tables that show the other side or to one of them. */
type FindDirectRelationships = (
  table: CatalogTable,
  side: ForeignKeySide,
  only?: CatalogTable,
) => readonly DirectRelationship[];

function throughJunctions(
  source: CatalogTable,
  target: CatalogTable,
  directRelationships: FindDirectRelationships,
  findTable: RelationshipSources["findTable"],
): JunctionRelationship[] {
  return directRelationships(source, "target")
    .filter(({ kind }) => kind === "one-to-many")
    .flatMap((toJunction) => {
      const junction = findTable(toJunction.target)!;
      const isWithinKey = (names: readonly string[]) => names.every((name) => junction.primaryKey.includes(name));
      if (!isWithinKey(toJunction.columns.map((pair) => pair.target))) return [];
      return directRelationships(junction, "source", target)
        .filter(({ kind, constraint }) => kind === "many-to-one" && constraint !== toJunction.constraint)
        .filter(({ columns }) => isWithinKey(columns.map((pair) => pair.source)))
        .map((toTarget) => toJunctionRelationship(toJunction, toTarget));
    });
}

function toDirectRelationship(
  key: StoredForeignKey,
  side: ForeignKeySide,
  near: ForeignKeyEnd,
  far: ForeignKeyEnd,
): DirectRelationship {
  return {
    kind: key.unique ? "one-to-one" : side === "source" ? "many-to-one" : "one-to-many",
    constraint: key.name,
    source: nameOf(near.table),
    target: nameOf(far.table),
    columns: near.names.map((source, index) => ({ source, target: far.names[index]! })),
    keyAt: side,
  };
}

function toJunctionRelationship(toJunction: DirectRelationship, toTarget: DirectRelationship): JunctionRelationship {
  return {
    kind: "many-to-many",
    source: toJunction.source,
    target: toTarget.target,
    junction: toJunction.target,
    sourceConstraint: toJunction.constraint,
    targetConstraint: toTarget.constraint,
    sourceColumns: toJunction.columns.map(({ source, target }) => ({ source, junction: target })),
    targetColumns: toTarget.columns.map(({ source, target }) => ({ junction: source, target })),
  };
}

function toComputedRelationships(
  table: CatalogTable,
  isExposed: (name: QualifiedName) => boolean,
): ComputedRelationship[] {
  return table.rowRoutines.flatMap((routine) => {
    const { type, set, estimatedRows } = routine.returns;
    const row = baseTypeOf(type);
    if (routine.kind !== "function" || routine.arguments.length !== 1) return [];
    if (row.kind !== "composite" || !row.table || !isExposed(row.table)) return [];
    const toOne = !set || estimatedRows === 1;
    return [{ kind: "computed" as const, source: nameOf(table), target: row.table, routine, toOne }];
  });
}

/** Returns all combinations of names for these columns, since a view may show a column more than once. Empty if one is not shown. */
function nameCombinations(projection: TableProjection, positions: readonly number[]): string[][] {
  return positions.reduce<string[][]>(
    (found, position) => found.flatMap((names) => projection.namesOf(position).map((name) => [...names, name])),
    [[]],
  );
}

const KIND_ORDER = ["one-to-many", "many-to-one", "one-to-one", "many-to-many", "computed"];

/** The order is stable, because clients see it in the hint about an ambiguous embedding. */
function compareRelationships(a: Relationship, b: Relationship): number {
  return (
    compareText(a.target.schema, b.target.schema) ||
    compareText(a.target.name, b.target.name) ||
    KIND_ORDER.indexOf(a.kind) - KIND_ORDER.indexOf(b.kind) ||
    compareText(sortKeyOf(a), sortKeyOf(b))
  );
}

function sortKeyOf(relationship: Relationship): string {
  switch (relationship.kind) {
    case "many-to-many":
      return [nameKey(relationship.junction), relationship.sourceConstraint, relationship.targetConstraint].join(" ");
    case "computed":
      return nameKey(relationship.routine);
    default:
      return `${relationship.constraint} ${relationship.columns.map(({ source, target }) => `${source} ${target}`).join(" ")}`;
  }
}

function compareText(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

function nameOf({ schema, name }: QualifiedName): QualifiedName {
  return { schema, name };
}

function isSame(a: QualifiedName, b: QualifiedName): boolean {
  return a.name === b.name && a.schema === b.schema;
}

function nameKey({ schema, name }: QualifiedName): string {
  return JSON.stringify([schema, name]);
}

/** The tables and views that show stored tables. */
export function findProjections(
  tables: ReadonlyMap<number, CatalogTable>,
  { tableTargets }: { readonly tableTargets: ViewColumnSources },
  isExposed: (table: CatalogTable) => boolean,
): TableProjections {
  const storedTablesBelow = (view: CatalogTable) =>
    new Set((tableTargets.get(view.oid) ?? []).map(({ table }) => table));

  const asItself = (table: CatalogTable): TableProjection => ({
    table,
    namesOf: (position) => columnNamesAt(table, position),
  });
  const throughView = (view: CatalogTable, stored: number): TableProjection => ({
    table: view,
    namesOf: (column) =>
      (tableTargets.get(view.oid) ?? [])
        .filter((target) => target.table === stored && target.column === column)
        .flatMap(({ position }) => columnNamesAt(view, position)),
  });

  const exposedViews = new Map<number, TableProjection[]>();
  for (const view of tables.values()) {
    if (!isExposed(view)) continue;
    for (const stored of storedTablesBelow(view)) {
      const projections = exposedViews.get(stored);
      if (projections) projections.push(throughView(view, stored));
      else exposedViews.set(stored, [throughView(view, stored)]);
    }
  }

  return {
    of(stored) {
      const table = tables.get(stored);
      const views = exposedViews.get(stored) ?? [];
      return table && isExposed(table) ? [asItself(table), ...views] : views;
    },
    storedTablesIn: (table) => [
      { stored: table.oid, surface: asItself(table) },
      ...[...storedTablesBelow(table)].map((stored) => ({ stored, surface: throughView(table, stored) })),
    ],
  };
}

function columnNamesAt({ columns }: CatalogTable, position: number): string[] {
  for (const column of columns.values()) if (column.position === position) return [column.name];
  return [];
}

/** A foreign key is one-to-one if its columns are a primary key or unique constraint; as in PostgREST, a unique index does not count. */
export function toStoredForeignKeys(constraints: readonly ConstraintRow[]): StoredForeignKey[] {
  const columnsKey = (table: number, columns: readonly number[]) =>
    [table, ...columns.toSorted((a, b) => a - b)].join(" ");
  const unique = new Set<string>();
  for (const { contype, table, columns } of constraints) {
    if (contype === "p" || contype === "u") unique.add(columnsKey(table, columns!));
  }
  return constraints
    .filter(({ contype }) => contype === "f")
    .map(({ name, table, columns, target, targetColumns }) => ({
      name,
      unique: unique.has(columnsKey(table, columns!)),
      source: { table, columns: columns! },
      target: { table: target, columns: targetColumns! },
    }));
}
