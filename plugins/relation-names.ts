import type { PgCodecWithAttributes } from "@dataplan/pg";
import { memoizePerObject } from "#runtime";
import { uniqueNamesOf } from "./name-claims.ts";
import { isTable, type PgRelation, primaryKeyOf, relationEntriesOf, resourcesOf } from "./table.ts";

type NamedRelationDetails = GraphileBuild.PgRelationsPluginRelationDetails;
type Registry = NamedRelationDetails["registry"];
type RelationNames = ReadonlyMap<string, string>;

/** The names that comments give to a table's relations, or else the default ones; another name where a column or relation has it. */
const relationNamesOf = memoizePerObject(
  (codec: PgCodecWithAttributes, registry: Registry, inflection: GraphileBuild.Inflection): RelationNames => {
    const columnNames = columnFieldNames(inflection, registry, codec);
    const defaults = defaultNames(inflection, registry, codec);
    const named = relationEntriesOf(registry, codec).map(
      ([relationName, relation]) => [nameInComment(relation) ?? defaults.get(relationName)!, relationName] as const,
    );
    return uniqueNamesOf(named, (name) => columnNames.includes(name));
  },
);

/** Undefined if the registry does not have the relation. */
export function relationNameOf(
  inflection: GraphileBuild.Inflection,
  { codec, registry, relationName }: NamedRelationDetails,
): string | undefined {
  return relationNamesOf(codec, registry, inflection).get(relationName);
}

function nameInComment({ isReferencee, isUnique, extensions }: PgRelation): string | undefined {
  const { fieldName, foreignFieldName, foreignSingleFieldName } = extensions?.tags ?? {};
  const names = isReferencee ? [isUnique && foreignSingleFieldName, foreignFieldName] : [fieldName];
  return names.find((name) => typeof name === "string");
}

/**
 * The field names of a table's relations, assigned together so that none is used twice. Adding tables and foreign keys renames
 * none: the foreign key of the first column has the short name.
 */
function defaultNames(
  inflection: GraphileBuild.Inflection,
  registry: Registry,
  codec: PgCodecWithAttributes,
): RelationNames {
  const names = new Map(nameForwardRelations(inflection, registry, codec));
  const taken = new Set([...columnFieldNames(inflection, registry, codec), ...names.values()]);
  for (const [relationName, relation] of backwardRelations(registry, codec)) {
    const rowsName = nameOfReferencingRows(inflection, relation);
    const candidates = [
      rowsName,
      inflection.camelCase(`${rowsName}-by-${reciprocalNameOf(inflection, registry, codec, relation)}`),
    ];
    names.set(relationName, takeFirstFree(taken, candidates));
  }
  return names;
}

/**
 * The columns that the schema shows as relations. A column of the primary key stays a field beside its relation, since clients
 * address rows by it; unless both have the same name.
 */
export const columnsShownAsRelations = memoizePerObject(
  (codec: PgCodecWithAttributes, registry: Registry): ReadonlySet<string> => {
    const table = resourcesOf(registry, codec).find(isTable);
    const key = (table && primaryKeyOf(table)) ?? [];
    const columns = forwardRelations(registry, codec).flatMap(([, relation]) => {
      const column = singleColumnOf(relation);
      return column === null || (key.includes(column) && referenceRoleOf(relation) !== column) ? [] : column;
    });
    return new Set(columns);
  },
);

function nameForwardRelations(
  inflection: GraphileBuild.Inflection,
  registry: Registry,
  codec: PgCodecWithAttributes,
): RelationNames {
  const names = new Map<string, string>();
  const taken = new Set(columnFieldNames(inflection, registry, codec));
  for (const [relationName, relation] of forwardRelations(registry, codec)) {
    const type = inflection.tableType(relation.remoteResource.codec);
    const columns = inflection._joinAttributeNames(codec, [...relation.localAttributes]);
    const candidates = [referenceRoleOf(relation) || type, `${type}-by-${columns}`].map((name) =>
      inflection.coerceToGraphQLName(inflection.camelCase(name)),
    );
    names.set(relationName, takeFirstFree(taken, candidates));
  }
  return names;
}

/** `author_id` -> `author`, `country_code` -> `country` where it refers to a code; empty for `id` and for several columns. */
function referenceRoleOf(relation: PgRelation): string {
  const column = singleColumnOf(relation) ?? "";
  const suffixes = ["id", relation.remoteAttributes[0]!].flatMap((name) => [
    `_${name}`,
    name[0]!.toUpperCase() + name.slice(1),
  ]);
  if (column === "id" || column === relation.remoteAttributes[0]) return "";
  const suffix = suffixes.find((ending) => column.endsWith(ending)) ?? "";
  return column.slice(0, column.length - suffix.length);
}

function takeFirstFree(taken: Set<string>, candidates: readonly string[]): string {
  const name = candidates.find((candidate) => !taken.has(candidate)) ?? candidates.at(-1)!;
  taken.add(name);
  return name;
}

function columnFieldNames(
  inflection: GraphileBuild.Inflection,
  registry: Registry,
  codec: PgCodecWithAttributes,
): string[] {
  const hidden = columnsShownAsRelations(codec, registry);
  return Object.keys(codec.attributes)
    .filter((column) => !hidden.has(column))
    .map((attributeName) => inflection.attribute({ attributeName, codec }));
}

function nameOfReferencingRows(inflection: GraphileBuild.Inflection, { remoteResource, isUnique }: PgRelation): string {
  const thing = inflection._singularizedResourceName(remoteResource);
  return inflection.camelCase(isUnique ? thing : inflection.pluralize(thing));
}

/** The name of the reverse relation, on the other table. */
function reciprocalNameOf(
  inflection: GraphileBuild.Inflection,
  registry: Registry,
  codec: PgCodecWithAttributes,
  relation: PgRelation,
): string {
  const remoteCodec = relation.remoteResource.codec;
  const reciprocal = forwardRelations(registry, remoteCodec).find(
    ([, { remoteResource, localAttributes }]) =>
      remoteResource.codec === codec && localAttributes.join() === relation.remoteAttributes.join(),
  );
  return reciprocal
    ? nameForwardRelations(inflection, registry, remoteCodec).get(reciprocal[0])!
    : relation.remoteAttributes.join("-");
}

function singleColumnOf({ localAttributes }: PgRelation): string | null {
  return localAttributes.length === 1 ? localAttributes[0]! : null;
}

function forwardRelations(registry: Registry, codec: PgCodecWithAttributes): [string, PgRelation][] {
  const position = Object.keys(codec.attributes);
  return relationEntriesOf(registry, codec)
    .filter(([, { isReferencee }]) => !isReferencee)
    .sort(
      ([, one], [, other]) => position.indexOf(one.localAttributes[0]!) - position.indexOf(other.localAttributes[0]!),
    );
}

function backwardRelations(registry: Registry, codec: PgCodecWithAttributes): [string, PgRelation][] {
  const position = ({ remoteResource, remoteAttributes }: PgRelation) =>
    Object.keys(remoteResource.codec.attributes).indexOf(remoteAttributes[0]!);
  return relationEntriesOf(registry, codec)
    .filter(([, { isReferencee }]) => isReferencee)
    .sort(([, one], [, other]) => position(one) - position(other));
}

/** The name of the field that the schema has for the relation. */
export function relationFieldName(
  inflection: GraphileBuild.Inflection,
  details: NamedRelationDetails,
  { isReferencee, isUnique }: PgRelation,
): string {
  if (!isUnique) return inflection.manyRelationList(details);
  return isReferencee ? inflection.singleRelationBackwards(details) : inflection.singleRelation(details);
}
