import type { PgCodec, PgCodecRelation, PgCodecWithAttributes, PgResource } from "@dataplan/pg";
import type { GraphQLInputType, GraphQLOutputType, GraphQLSchema } from "grafast/graphql";
import type { PgClass } from "graphile-build-pg/pg-introspection";
import { memoizePerObject } from "#runtime";

/** PostGraphile's resource: a table, view or function. */
export type SchemaResource = GraphileBuild.BehaviorEntities["pgResource"];

/** A table or view. */
export type PgTable = PgResource<string, PgCodecWithAttributes>;

export type Codec = PgCodec;

export type PgRelation = PgCodecRelation;

export type FieldScope = Partial<GraphileBuild.ScopeObjectFieldsField>;

export function isTable(resource: SchemaResource): resource is PgTable {
  return !resource.parameters && Boolean(resource.codec.attributes) && !resource.isVirtual;
}

export function tablesOf({ pgResources }: GraphileBuild.Build): PgTable[] {
  return Object.values(pgResources).filter(isTable);
}

export function functionResourcesOf({ pgResources }: GraphileBuild.Build): SchemaResource[] {
  return (Object.values(pgResources) as SchemaResource[]).filter(({ parameters }) => parameters);
}

type SchemaRegistry = GraphileBuild.BuildInput["pgRegistry"];

/** All resources that return rows of this type: its table, and functions. */
export function resourcesOf(registry: SchemaRegistry, codec: Codec): readonly SchemaResource[] {
  return resourcesByCodec(registry).get(codec) ?? [];
}

const resourcesByCodec = memoizePerObject(({ pgResources }: SchemaRegistry) =>
  Map.groupBy(Object.values(pgResources) as SchemaResource[], ({ codec }): Codec => codec),
);

/** The relations of a row type, with their names in the registry. */
export function relationEntriesOf({ pgRelations }: SchemaRegistry, { name }: Codec): [string, PgRelation][] {
  return Object.entries(pgRelations[name] ?? {}) as [string, PgRelation][];
}

/** Undefined if the registry does not have the relation. */
export function relationOf({
  registry,
  codec,
  relationName,
}: GraphileBuild.PgRelationsPluginRelationDetails): PgRelation | undefined {
  return registry.pgRelations[codec.name]?.[relationName];
}

/** `public.things`, for messages. */
export function sqlNameOf({ name, extensions }: Pick<SchemaResource, "name" | "extensions">): string {
  return extensions?.pg ? `${extensions.pg.schemaName}.${extensions.pg.name}` : name;
}

/**
 * The columns that identify a row: the primary key, or else a unique constraint over columns that are not null. Null when there
 * is neither.
 */
export function keyOf(table: PgTable): readonly string[] | null {
  const { uniques, codec } = table;
  const unique = uniques.find(
    ({ attributes, extensions }) =>
      !extensions?.isFromIndex && attributes.every((name) => codec.attributes[name]?.notNull),
  );
  return primaryKeyOf(table) ?? unique?.attributes ?? null;
}

export function primaryKeyOf({ uniques }: PgTable): readonly string[] | null {
  return uniques.find(({ isPrimary }) => isPrimary)?.attributes ?? null;
}

/** The column with this description in a row type. */
export function columnOf({ attributes }: Codec, attribute: object): string {
  const column = Object.keys(attributes!).find((name) => attributes![name] === attribute);
  if (column === undefined) throw new Error("A field describes a column that its row type does not have.");
  return column;
}

/** True for a table with children that may lack its constraints; partitions have the constraints of their table. */
export function hasChildren(pgClass: PgClass | undefined): boolean {
  return pgClass?.relkind === "r" && pgClass.relhassubclass === true;
}

/** The columns that clients may write, by privileges and comments. */
export function writableColumnsOf(
  { behavior }: GraphileBuild.Build,
  { codec }: PgTable,
  action: "insert" | "update",
): string[] {
  return Object.keys(codec.attributes).filter((column) =>
    behavior.pgCodecAttributeMatches([codec, column], `attribute:${action}`),
  );
}

/** True if items of the result may be null: for functions that return a set of values, not rows. */
export function mayHoldNulls({ parameters, codec, isUnique, extensions }: SchemaResource): boolean {
  return Boolean(parameters) && !isUnique && !codec.attributes && !codec.notNull && !extensions?.tags?.notNull;
}

export function inputTypeOf({ getGraphQLTypeByPgCodec }: GraphileBuild.Build, codec: Codec): GraphQLInputType | null {
  return getGraphQLTypeByPgCodec(codec, "input") as GraphQLInputType | null;
}

export function outputTypeOf({ getGraphQLTypeByPgCodec }: GraphileBuild.Build, codec: Codec): GraphQLOutputType | null {
  return getGraphQLTypeByPgCodec(codec, "output") as GraphQLOutputType | null;
}

/** The GraphQL names of a table or view. */
export type GraphqlTableNames = {
  readonly schema: string;
  readonly table: string;
  readonly type: string;
  /** The query fields that return its rows. */
  readonly fields: readonly string[];
};

export function listGraphqlTableNames(build: GraphileBuild.Build, schema: GraphQLSchema): GraphqlTableNames[] {
  const { inflection } = build;
  const queries = schema.getQueryType()?.getFields() ?? {};
  return tablesOf(build).flatMap((resource) => {
    const { pg } = resource.extensions ?? {};
    const type = inflection.tableType(resource.codec);
    if (!pg || !schema.getType(type)) return [];
    const rowName = inflection._singularizedResourceName(resource);
    const names = [inflection.allRowsOf(rowName), inflection.camelCase(rowName)];
    const fields = names.filter((name) => Object.hasOwn(queries, name));
    return [{ schema: pg.schemaName, table: pg.name, type, fields }];
  });
}
