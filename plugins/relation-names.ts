import type { PgCodecWithAttributes } from "postgraphile/@dataplan/pg";
import { oncePer } from "../engine/once-per.ts";
import { isTable, type Relation, resourcesOf } from "./table.ts";

type Inflection = GraphileBuild.Inflection;
type Registry = GraphileBuild.PgRelationsPluginRelationDetails["registry"];
type Names = ReadonlyMap<string, string>;

/**
 * What the relations of a table are called, all decided together so that no two fields share a name. Names stay when
 * tables and foreign keys are added: the short one belongs to who came first, by the position of the column.
 */
export const relationNamesOf = oncePer(
  (codec: PgCodecWithAttributes, registry: Registry, inflection: Inflection): Names => {
    const names = new Map(nameForward(inflection, registry, codec));
    const taken = new Set([...columnNames(inflection, registry, codec), ...names.values()]);
    for (const [relationName, relation] of backwardRelations(registry, codec)) {
      const things = nameOfThings(inflection, relation);
      const candidates = [
        things,
        inflection.camelCase(`${things}-by-${nameOfUs(inflection, registry, codec, relation)}`),
      ];
      names.set(relationName, take(taken, candidates));
    }
    return names;
  },
);

/**
 * The columns that the schema shows as the things they refer to. A column of the key stays beside its thing, since clients
 * address rows by it; unless both would have one name.
 */
export const columnsShownAsRelations = oncePer(
  (codec: PgCodecWithAttributes, registry: Registry): ReadonlySet<string> => {
    const key = primaryKeyOf(registry, codec);
    const columns = forwardRelations(registry, codec).flatMap(([, relation]) => {
      const column = soleColumnOf(relation);
      return column === null || (key.includes(column) && roleOf(relation) !== column) ? [] : column;
    });
    return new Set(columns);
  },
);

function nameForward(inflection: Inflection, registry: Registry, codec: PgCodecWithAttributes): Names {
  const names = new Map<string, string>();
  const taken = new Set(columnNames(inflection, registry, codec));
  for (const [relationName, relation] of forwardRelations(registry, codec)) {
    const type = inflection.tableType(relation.remoteResource.codec);
    const columns = inflection._joinAttributeNames(codec, [...relation.localAttributes]);
    const candidates = [roleOf(relation) || type, `${type}-by-${columns}`].map((name) =>
      inflection.coerceToGraphQLName(inflection.camelCase(name)),
    );
    names.set(relationName, take(taken, candidates));
  }
  return names;
}

/** `author_id` -> `author`, `country_code` -> `country` where it refers to a code; empty for `id` and for several columns. */
function roleOf(relation: Relation): string {
  const column = soleColumnOf(relation) ?? "";
  const suffixes = ["id", relation.remoteAttributes[0]!].flatMap((name) => [
    `_${name}`,
    name[0]!.toUpperCase() + name.slice(1),
  ]);
  if (column === "id" || column === relation.remoteAttributes[0]) return "";
  const suffix = suffixes.find((ending) => column.endsWith(ending)) ?? "";
  return column.slice(0, column.length - suffix.length);
}

function take(taken: Set<string>, candidates: readonly string[]): string {
  const name = candidates.find((candidate) => !taken.has(candidate)) ?? candidates.at(-1)!;
  taken.add(name);
  return name;
}

function columnNames(inflection: Inflection, registry: Registry, codec: PgCodecWithAttributes): string[] {
  const hidden = columnsShownAsRelations(codec, registry);
  return Object.keys(codec.attributes)
    .filter((column) => !hidden.has(column))
    .map((attributeName) => inflection.attribute({ attributeName, codec }));
}

function nameOfThings(inflection: Inflection, { remoteResource, isUnique }: Relation): string {
  const thing = inflection._singularizedResourceName(remoteResource);
  return inflection.camelCase(isUnique ? thing : inflection.pluralize(thing));
}

/** How the other table calls this one in the same foreign key. */
function nameOfUs(
  inflection: Inflection,
  registry: Registry,
  codec: PgCodecWithAttributes,
  relation: Relation,
): string {
  const theirs = relation.remoteResource.codec;
  const reciprocal = forwardRelations(registry, theirs).find(
    ([, { remoteResource, localAttributes }]) =>
      remoteResource.codec === codec && localAttributes.join() === relation.remoteAttributes.join(),
  );
  return reciprocal
    ? nameForward(inflection, registry, theirs).get(reciprocal[0])!
    : relation.remoteAttributes.join("-");
}

function soleColumnOf({ localAttributes }: Relation): string | null {
  return localAttributes.length === 1 ? localAttributes[0]! : null;
}

function primaryKeyOf(registry: Registry, codec: PgCodecWithAttributes): readonly string[] {
  const table = resourcesOf(registry, codec).find(isTable);
  return table?.uniques.find(({ isPrimary }) => isPrimary)?.attributes ?? [];
}

function forwardRelations(registry: Registry, codec: PgCodecWithAttributes): [string, Relation][] {
  const position = Object.keys(codec.attributes);
  return relationsOf(registry, codec)
    .filter(([, { isReferencee }]) => !isReferencee)
    .sort(
      ([, one], [, other]) => position.indexOf(one.localAttributes[0]!) - position.indexOf(other.localAttributes[0]!),
    );
}

function backwardRelations(registry: Registry, codec: PgCodecWithAttributes): [string, Relation][] {
  const position = ({ remoteResource, remoteAttributes }: Relation) =>
    Object.keys(remoteResource.codec.attributes).indexOf(remoteAttributes[0]!);
  return relationsOf(registry, codec)
    .filter(([, { isReferencee }]) => isReferencee)
    .sort(([, one], [, other]) => position(one) - position(other));
}

function relationsOf(registry: Registry, codec: PgCodecWithAttributes): [string, Relation][] {
  return Object.entries(registry.pgRelations[codec.name] ?? {}) as [string, Relation][];
}
