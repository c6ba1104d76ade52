import {
  type Catalog,
  type CatalogTable,
  type ColumnPair,
  mayNameColumn,
  mayNameTable,
  operatorSchemaOf,
  type QualifiedName,
  type Relationship,
} from "#catalog";
import { ApiError } from "#runtime";
import { suggestName } from "./find-target.ts";
import { chooseAlias, type SelectScope, tableRowScope, tableScope, typeOfField, useColumn } from "./scope.ts";
import { columnExpression, type RowSource, type WherePredicate } from "./selection.ts";

const MIN_SIMILARITY_RELATION = 0.33;

/** The name of a relation: `target` is a table, a constraint, a column or a function; `hint` disambiguates. */
type RelationName = {
  readonly source: CatalogTable | null;
  /** The name of the source in error messages. */
  readonly sourceName: string;
  readonly schema: string;
  readonly target: string;
  readonly hint: string | null;
};

/** Finds the relationship by PostgREST's rules. Throws PGRST200 if there is none, and PGRST201 (status 300) if several match. */
export function findRelationship(relation: RelationName, catalog: Catalog, role: string): Relationship {
  const found = listCandidates(relation, catalog).filter((relationship) =>
    matchesName(relationship, relation, catalog),
  );
  if (found.length === 0) throw relationshipNotFound(relation, catalog, role);
  if (found.length === 1) return found[0]!;
  // Relationships through tables that the caller may not see are not offered.
  const choices = found.filter((relationship) => isVisibleRelationship(relationship, catalog, role));
  if (choices.length > 1) throw ambiguousRelationship(relation, choices);
  return choices[0] ?? found[0]!;
}

function listCandidates({ source, schema, target }: RelationName, catalog: Catalog): Relationship[] {
  if (!source) return [];
  const named = catalog.findTable({ schema, name: target });
  const throughJunctions = named
    ? catalog.relationshipsBetween(source, named).filter(({ kind }) => kind === "many-to-many")
    : [];
  const direct = catalog.relationshipsOf(source).filter((relationship) => relationshipSchema(relationship) === schema);
  const exposed = throughJunctions.filter(
    (relationship) =>
      relationship.kind === "many-to-many" && catalog.schemas.get(relationship.junction.schema)?.exposed === true,
  );
  return [...direct, ...exposed];
}

function matchesName(relationship: Relationship, { target, hint }: RelationName, catalog: Catalog): boolean {
  if (relationship.kind === "computed") return relationship.routine.name === target;
  const isTarget = relationship.target.name === target;
  if (isSelfReference(relationship)) {
    // `children:people(*)` by the table, `boss_id(*)` by the column, `reports:people!boss_id(*)` by both.
    if (hint !== null) return isTarget && relationship.kind === "one-to-many" && hasTargetColumn(relationship, hint);
    if (relationship.kind === "one-to-many") return isTarget;
    return relationship.kind === "many-to-one" && hasSourceColumn(relationship, target);
  }
  if (hint !== null) {
    return (
      isTarget &&
      (hasConstraint(relationship, hint) ||
        hasSourceColumn(relationship, hint) ||
        hasTargetColumn(relationship, hint) ||
        (relationship.kind === "many-to-many" && relationship.junction.name === hint))
    );
  }
  if (isTarget) return true;
  // A view has the constraints and columns of its table, so it is matched by its own name only.
  if (isView(relationship, catalog)) return false;
  return hasConstraint(relationship, target) || hasSourceColumn(relationship, target);
}

function isSelfReference({ source, target }: Relationship): boolean {
  return source.name === target.name && source.schema === target.schema;
}

function isView({ target }: Relationship, catalog: Catalog): boolean {
  const kind = catalog.findTable(target)?.kind;
  return kind === "view" || kind === "materialized view";
}

function hasConstraint(relationship: Relationship, name: string): boolean {
  return "constraint" in relationship && relationship.constraint === name;
}

function hasSourceColumn(relationship: Relationship, name: string): boolean {
  return "columns" in relationship && relationship.columns.length === 1 && relationship.columns[0]!.source === name;
}

function hasTargetColumn(relationship: Relationship, name: string): boolean {
  return "columns" in relationship && relationship.columns.length === 1 && relationship.columns[0]!.target === name;
}

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

export type StoredRelationship = Exclude<Relationship, { readonly kind: "computed" }>;

/** The relationships of a table to stored tables of its schema, each by the shortest name with which `findRelationship` finds it. */
export function nameRelationships(source: CatalogTable, catalog: Catalog): ReadonlyMap<string, StoredRelationship> {
  const { schema, name: sourceName, columns } = source;
  const direct = catalog.relationshipsOf(source).filter((relationship) => relationshipSchema(relationship) === schema);
  const throughJunctions = [...junctionTargets(source, catalog)].flatMap((target) =>
    catalog.relationshipsBetween(source, target).filter(({ kind }) => kind === "many-to-many"),
  );
  const candidates = Map.groupBy([...direct, ...throughJunctions], ({ target }) => target.name);
  const functions = new Set(direct.flatMap((other) => (other.kind === "computed" ? other.routine.name : [])));
  const otherNames = new Set([...functions, ...direct.flatMap(namesOfKey)]);
  const named = new Map<string, StoredRelationship>();
  for (const [target, group] of candidates) {
    if (functions.has(target)) continue;
    for (const relationship of group) {
      if (relationship.kind === "computed" || isView(relationship, catalog)) continue;
      const hints = otherNames.has(target) ? hintsOf(relationship) : [null, ...hintsOf(relationship)];
      const hint = hints.find((each) => {
        const relation = { source, sourceName, schema, target, hint: each };
        const found = group.filter((other) => matchesName(other, relation, catalog));
        return found.length === 1 && found[0] === relationship && !columns.has(relationName(target, each));
      });
      if (hint !== undefined) named.set(relationName(target, hint), relationship);
    }
  }
  return named;
}

function relationName(target: string, hint: string | null): string {
  return hint === null ? target : `${target}!${hint}`;
}

/** Names of a foreign key that are also looked up without its table. */
function namesOfKey(relationship: Relationship): string[] {
  if (!("constraint" in relationship)) return [];
  const { constraint, columns } = relationship;
  return columns.length === 1 ? [constraint, columns[0]!.source] : [constraint];
}

function hintsOf(relationship: StoredRelationship): string[] {
  const columns = "columns" in relationship && relationship.columns.length === 1 ? relationship.columns : [];
  return [relationshipHintName(relationship), ...columns.map(({ target }) => target)];
}

/** The tables of the same schema that a junction refers to, where the reference to the source is a part of the junction's key. */
function junctionTargets(source: CatalogTable, catalog: Catalog): Set<CatalogTable> {
  const targets = new Set<CatalogTable>();
  for (const toJunction of catalog.relationshipsOf(source)) {
    if (toJunction.kind !== "one-to-many") continue;
    const junction = catalog.findTable(toJunction.target)!;
    const isWithinKey = (names: readonly string[]) => names.every((name) => junction.primaryKey.includes(name));
    if (!isWithinKey(toJunction.columns.map(({ target }) => target))) continue;
    if (!catalog.schemas.get(junction.schema)?.exposed) continue;
    for (const { constraint, target, columns } of catalog.referencesFrom(junction)) {
      const isOther = constraint !== toJunction.constraint && target.schema === source.schema;
      if (isOther && isWithinKey(columns.map((pair) => pair.source))) targets.add(catalog.findTable(target)!);
    }
  }
  return targets;
}

/** A computed relationship belongs to the schema of its function. */
function relationshipSchema(relationship: Relationship): string {
  return relationship.kind === "computed" ? relationship.routine.schema : relationship.target.schema;
}

/** True if errors may name the relationship to the role: its target, its junction table and their columns are visible. */
function isVisibleRelationship(relationship: Relationship, catalog: Catalog, role: string): boolean {
  return namedColumns(relationship).every(([name, columns]) => {
    const table = catalog.findTable(name);
    return (
      table !== undefined &&
      mayNameTable(catalog, role, table) &&
      columns.every((column) => mayNameColumn(catalog, role, table, column))
    );
  });
}

/** The tables and columns that a message about the relationship names, besides the table of the request. */
function namedColumns(relationship: Relationship): (readonly [QualifiedName, readonly string[]])[] {
  const { kind, source, target } = relationship;
  if (kind === "computed") return [[target, []]];
  if (kind === "many-to-many") {
    const { junction, sourceColumns, targetColumns } = relationship;
    return [
      [target, []],
      [junction, [...sourceColumns, ...targetColumns].map((pair) => pair.junction)],
    ];
  }
  const { columns } = relationship;
  return [
    [source, columns.map((pair) => pair.source)],
    [target, columns.map((pair) => pair.target)],
  ];
}

function relationshipNotFound(relation: RelationName, catalog: Catalog, role: string): ApiError {
  const { sourceName, target, hint, schema } = relation;
  const using = hint === null ? "" : `' using the hint '${hint}`;
  return new ApiError(
    "invalid",
    "PGRST200",
    `Could not find a relationship between '${sourceName}' and '${target}' in the schema cache`,
    {
      details:
        `Searched for a foreign key relationship between '${sourceName}' and '${target}${using}' ` +
        `in the schema '${schema}', but no matches were found.`,
      hint: relationshipHint(relation, catalog, role),
    },
  );
}

function relationshipHint(relation: RelationName, catalog: Catalog, role: string): string | null {
  const { source, schema, target } = relation;
  const related = source ? catalog.relationshipsOf(source).filter((other) => relationshipSchema(other) === schema) : [];
  // Does not disclose a hidden junction by suggesting another source name.
  if (source && related.length === 0 && catalog.hiddenJunctions.has(source.oid)) return null;
  if (!source || related.length === 0) return sourceTableHint(relation, catalog, role);
  const all = [...related, ...related.flatMap((there) => throughJunction(source, there, catalog))];
  const mayName = (known: string) =>
    all.some((other) => other.target.name === known && isVisibleRelationship(other, catalog, role));
  const suggestion = suggestName(target, [...new Set(all.map((other) => other.target.name))], {
    minSimilarity: MIN_SIMILARITY_RELATION,
    mayName,
  });
  // The name exists, so the hint is wrong.
  if (suggestion === null || suggestion.toLowerCase() === target.toLowerCase()) return null;
  return `Perhaps you meant '${suggestion}' instead of '${target}'.`;
}

function sourceTableHint({ sourceName, schema }: RelationName, catalog: Catalog, role: string): string | null {
  const tables = catalog.schemas.get(schema)?.tables ?? new Map<string, CatalogTable>();
  const others = [...tables.keys()].filter((name) => name !== sourceName);
  const mayName = (known: string) => {
    const table = tables.get(known)!;
    return mayNameTable(catalog, role, table) && catalog.relationshipsOf(table).length > 0;
  };
  const suggestion = suggestName(sourceName, others, { minSimilarity: MIN_SIMILARITY_RELATION, mayName });
  return suggestion && `Perhaps you meant '${suggestion}' instead of '${sourceName}'.`;
}

/** The relationships through a table that references the source, if it is a junction. */
function throughJunction(source: CatalogTable, there: Relationship, catalog: Catalog): Relationship[] {
  const junction = there.kind === "one-to-many" ? catalog.findTable(there.target) : undefined;
  if (!junction) return [];
  return catalog.relationshipsOf(junction).flatMap(({ kind, target }) => {
    const table = kind === "many-to-one" ? catalog.findTable(target) : undefined;
    if (!table) return [];
    return catalog.relationshipsBetween(source, table).filter((other) => other.kind === "many-to-many");
  });
}

function ambiguousRelationship({ sourceName, target }: RelationName, choices: readonly Relationship[]): ApiError {
  const hints = choices.map((choice) => `'${choice.target.name}!${relationshipHintName(choice)}'`).join(", ");
  return new ApiError(
    "ambiguous",
    "PGRST201",
    `Could not embed because more than one relationship was found for '${sourceName}' and '${target}'`,
    {
      details: choices.map(describeRelationship),
      hint:
        `Try changing '${target}' to one of the following: ${hints}. ` +
        "Find the desired relationship in the 'details' key.",
    },
  );
}

function relationshipHintName(relationship: Relationship): string {
  switch (relationship.kind) {
    case "many-to-many":
      return relationship.junction.name;
    case "computed":
      return relationship.routine.name;
    default:
      return relationship.constraint;
  }
}

function describeRelationship(relationship: Relationship): object {
  const { kind, source, target } = relationship;
  return {
    cardinality: kind,
    embedding: `${source.name} with ${target.name}`,
    relationship: relationshipColumns(relationship),
  };
}

/** `films_director using films(director_id) and directors(id)` */
function relationshipColumns(relationship: Relationship): string {
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

/** The source of a selection, and the join condition to the parent rows. */
export type JoinedSource = {
  readonly scope: SelectScope;
  readonly source: RowSource;
  readonly join: readonly WherePredicate[];
};

type JoinContext = { readonly catalog: Catalog; readonly role: string };

export function joinRelationship(relationship: Relationship, outer: SelectScope, context: JoinContext): JoinedSource {
  const table = context.catalog.findTable(relationship.target)!;
  switch (relationship.kind) {
    case "many-to-many":
      return joinThroughJunction(relationship, table, outer, context);
    case "computed":
      return joinByFunction(relationship, table, outer);
    default: {
      const alias = chooseAlias(table.name, outer.depth + 1, outer.takenAliases);
      const scope = tableScope(table, innerScope(outer, alias), context);
      const join = relationship.columns.map((pair) => equalityPredicate(scope.alias, outer, pair, context));
      return { scope, source: { kind: "table", name: qualifiedNameOf(table), through: null }, join };
    }
  }
}

function joinThroughJunction(
  relationship: Relationship & { kind: "many-to-many" },
  table: CatalogTable,
  outer: SelectScope,
  context: JoinContext,
): JoinedSource {
  const { junction, sourceColumns, targetColumns } = relationship;
  const own = tableScope(table, innerScope(outer, chooseAlias(table.name, 0, outer.takenAliases)), context);
  const alias = chooseAlias(junction.name, 0, own.takenAliases);
  const scope = { ...own, takenAliases: new Set(own.takenAliases).add(alias) };
  const join = sourceColumns.map((pair) =>
    equalityPredicate(alias, outer, { source: pair.source, target: pair.junction }, context),
  );
  const on = targetColumns.map((pair) => {
    return { ...pair, operatorSchema: operatorSchemaOf(table.columns.get(pair.target)?.type, context) };
  });
  const through = { table: junction, alias, on };
  return { scope, source: { kind: "table", name: qualifiedNameOf(table), through }, join };
}

function joinByFunction(
  { routine }: Relationship & { kind: "computed" },
  table: CatalogTable,
  outer: SelectScope,
): JoinedSource {
  const scope = tableRowScope(table, innerScope(outer, chooseAlias(table.name, outer.depth + 1, outer.takenAliases)));
  for (const name of outer.composite?.columns ?? []) outer.usedNames.add(name);
  const row = { of: outer.alias, as: outer.composite };
  return { scope, source: { kind: "row function", routine: qualifiedNameOf(routine), row }, join: [] };
}

function innerScope({ depth, takenAliases }: SelectScope, alias: string) {
  return { alias, depth: depth + 1, takenAliases };
}

function equalityPredicate(
  alias: string,
  outer: SelectScope,
  { source, target }: ColumnPair,
  context: JoinContext,
): WherePredicate {
  const operatorSchema = operatorSchemaOf(typeOfField(source, outer), context);
  return { kind: "same", left: columnExpression(alias, target), operatorSchema, right: useColumn(outer, source) };
}

function qualifiedNameOf({ schema, name }: { readonly schema: string; readonly name: string }) {
  return { schema, name };
}
