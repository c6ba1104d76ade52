import { memoized } from "../memoized.ts";
import type { QualifiedName } from "./qualified-name.ts";
import type { Routine } from "./routines.ts";
import type { Table } from "./tables.ts";
import { baseTypeOf } from "./types.ts";

type Ends = {
  readonly source: QualifiedName;
  readonly target: QualifiedName;
};

/** A foreign key seen from one of its ends. */
export type DirectRelationship = Ends & {
  readonly kind: "many-to-one" | "one-to-many" | "one-to-one";
  readonly constraint: string;
  readonly columns: readonly ColumnPair[];
  /** Which end bears the foreign key: the source in many-to-one, the target in one-to-many. */
  readonly keyAt: "source" | "target";
};

/** The same foreign key seen from its other end. */
export function reversed(relationship: DirectRelationship): DirectRelationship {
  const { kind, source, target, columns, keyAt } = relationship;
  return {
    ...relationship,
    kind: kind === "one-to-one" ? kind : kind === "many-to-one" ? "one-to-many" : "many-to-one",
    source: target,
    target: source,
    columns: columns.map((pair) => ({ source: pair.target, target: pair.source })),
    keyAt: OTHER[keyAt],
  };
}

/** Two foreign keys of a junction table, both within its primary key. */
export type JunctionRelationship = Ends & {
  readonly kind: "many-to-many";
  readonly junction: QualifiedName;
  readonly sourceConstraint: string;
  readonly targetConstraint: string;
  readonly sourceColumns: readonly { readonly source: string; readonly junction: string }[];
  readonly targetColumns: readonly { readonly junction: string; readonly target: string }[];
};

/** A function from a row to rows of another table. */
export type ComputedRelationship = Ends & {
  readonly kind: "computed";
  readonly routine: Routine;
  readonly toOne: boolean;
};

export type Relationship = DirectRelationship | JunctionRelationship | ComputedRelationship;
export type ColumnPair = { readonly source: string; readonly target: string };

/** A foreign key between tables as they are stored, by the numbers of their columns. */
export type StoredKey = {
  readonly name: string;
  readonly unique: boolean;
  readonly source: StoredColumns;
  readonly target: StoredColumns;
};
type StoredColumns = { readonly table: number; readonly columns: readonly number[] };

/** How a table or view shows a stored table: the names under which a column of that appears. */
export type Surface = { readonly table: Table; namesOf(position: number): readonly string[] };

export type Surfaces = {
  /** The exposed tables and views that show a stored table. */
  of(stored: number): readonly Surface[];
  /** The stored tables that a table or view shows. */
  storedIn(table: Table): readonly { readonly stored: number; readonly surface: Surface }[];
};

export type Relationships = {
  /** By the table's foreign keys, by those that point to it, and by functions of its rows. */
  relationshipsOf(table: Table): readonly (DirectRelationship | ComputedRelationship)[];
  /** By the table's own foreign keys alone: found without those that point to it, which may be many more. */
  referencesFrom(table: Table): readonly DirectRelationship[];
  /** All that lead from one table to another, through junctions too. */
  relationshipsBetween(source: Table, target: Table): readonly Relationship[];
};

type Facts = {
  readonly keys: readonly StoredKey[];
  readonly surfaces: Surfaces;
  readonly isExposed: (name: QualifiedName) => boolean;
  readonly findTable: (name: QualifiedName) => Table | undefined;
};

/** One end of a foreign key, as a table or view shows it. */
type End = { readonly table: Table; readonly names: readonly string[] };
type Side = "source" | "target";

const OTHER = { source: "target", target: "source" } as const;

/**
 * They are worked out when asked for, and those through junctions between two tables at a time: views multiply them
 * (35,544 for 45 tables and 281 views in PostgREST's pull request 2262; half a million from one table among 5,000
 * views), and hardly any are ever used.
 */
export function makeRelationships({ keys, surfaces, isExposed, findTable }: Facts): Relationships {
  const keysAt = {
    source: Map.groupBy(keys, ({ source }) => source.table),
    target: Map.groupBy(keys, ({ target }) => target.table),
  };
  const endsShowing = ({ table, columns }: StoredColumns): End[] =>
    surfaces
      .of(table)
      .flatMap((surface) => namings(surface, columns).map((names) => ({ table: surface.table, names })));
  const endsAt = {
    source: memoized((key: StoredKey) => endsShowing(key.source)),
    target: memoized((key: StoredKey) => endsShowing(key.target)),
  };

  /** Those of the foreign keys whose one side is at the table, to all tables that show the other side or to one of them. */
  const direct = (table: Table, side: Side, only?: Table): DirectRelationship[] =>
    surfaces.storedIn(table).flatMap(({ stored, surface }) =>
      (keysAt[side].get(stored) ?? []).flatMap((key) => {
        const ends = endsAt[OTHER[side]](key).filter((end) => !only || end.table === only);
        return namings(surface, key[side].columns).flatMap((names) =>
          ends.map((end) => toDirectRelationship(key, side, { table, names }, end)),
        );
      }),
    );

  const throughJunctions = (source: Table, target: Table): JunctionRelationship[] =>
    direct(source, "target")
      .filter(({ kind }) => kind === "one-to-many")
      .flatMap((there) => {
        const junction = findTable(there.target)!;
        const isWithinKey = (names: readonly string[]) => names.every((name) => junction.primaryKey.includes(name));
        if (!isWithinKey(there.columns.map((pair) => pair.target))) return [];
        return direct(junction, "source", target)
          .filter(({ kind, constraint }) => kind === "many-to-one" && constraint !== there.constraint)
          .filter(({ columns }) => isWithinKey(columns.map((pair) => pair.source)))
          .map((on) => toJunctionRelationship(there, on));
      });

  const computed = memoized((table: Table) => toComputedRelationships(table, isExposed));
  /** A function that bears the name of a table takes the place of what the foreign keys say about that table. */
  const isOverridden = (source: Table, target: QualifiedName) =>
    computed(source).some(({ routine }) => isSame(routine, target));

  const detected = (table: Table, side: Side) =>
    direct(table, side).filter(({ target }) => !isOverridden(table, target));
  const referencesFrom = memoized((table: Table) => detected(table, "source").sort(inOrder));
  const relationshipsOf = memoized((table: Table) =>
    [...referencesFrom(table), ...detected(table, "target"), ...computed(table)].sort(inOrder),
  );

  return {
    relationshipsOf,
    referencesFrom,
    relationshipsBetween(source, target) {
      const ofSource = relationshipsOf(source).filter((relationship) => isSame(relationship.target, target));
      return isOverridden(source, target) ? ofSource : [...ofSource, ...throughJunctions(source, target)].sort(inOrder);
    },
  };
}

function toDirectRelationship(key: StoredKey, side: Side, near: End, far: End): DirectRelationship {
  return {
    kind: key.unique ? "one-to-one" : side === "source" ? "many-to-one" : "one-to-many",
    constraint: key.name,
    source: nameOf(near.table),
    target: nameOf(far.table),
    columns: near.names.map((source, index) => ({ source, target: far.names[index]! })),
    keyAt: side,
  };
}

function toJunctionRelationship(there: DirectRelationship, on: DirectRelationship): JunctionRelationship {
  return {
    kind: "many-to-many",
    source: there.source,
    target: on.target,
    junction: there.target,
    sourceConstraint: there.constraint,
    targetConstraint: on.constraint,
    sourceColumns: there.columns.map(({ source, target }) => ({ source, junction: target })),
    targetColumns: on.columns.map(({ source, target }) => ({ junction: source, target })),
  };
}

function toComputedRelationships(table: Table, isExposed: (name: QualifiedName) => boolean): ComputedRelationship[] {
  return table.rowRoutines.flatMap((routine) => {
    const { type, set, estimatedRows } = routine.returns;
    const row = baseTypeOf(type);
    if (routine.kind !== "function" || routine.arguments.length !== 1) return [];
    if (row.kind !== "composite" || !row.table || !isExposed(row.table)) return [];
    const toOne = !set || estimatedRows === 1;
    return [{ kind: "computed" as const, source: nameOf(table), target: row.table, routine, toOne }];
  });
}

/** Every way to name these columns: a view may show one column more than once. Empty when one is not shown at all. */
function namings(surface: Surface, positions: readonly number[]): string[][] {
  return positions.reduce<string[][]>(
    (found, position) => found.flatMap((names) => surface.namesOf(position).map((name) => [...names, name])),
    [[]],
  );
}

const ORDER = ["one-to-many", "many-to-one", "one-to-one", "many-to-many", "computed"];

/** Stable, because clients see it in the hints of an ambiguous embedding. */
function inOrder(a: Relationship, b: Relationship): number {
  return (
    compare(a.target.schema, b.target.schema) ||
    compare(a.target.name, b.target.name) ||
    ORDER.indexOf(a.kind) - ORDER.indexOf(b.kind) ||
    compare(detailOf(a), detailOf(b))
  );
}

function detailOf(relationship: Relationship): string {
  switch (relationship.kind) {
    case "many-to-many":
      return [spell(relationship.junction), relationship.sourceConstraint, relationship.targetConstraint].join(" ");
    case "computed":
      return spell(relationship.routine);
    default:
      return `${relationship.constraint} ${relationship.columns.map(({ source, target }) => `${source} ${target}`).join(" ")}`;
  }
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

function nameOf({ schema, name }: QualifiedName): QualifiedName {
  return { schema, name };
}

function isSame(a: QualifiedName, b: QualifiedName): boolean {
  return a.name === b.name && a.schema === b.schema;
}

function spell({ schema, name }: QualifiedName): string {
  return JSON.stringify([schema, name]);
}
