import type { PgCodec, PgCodecRelation, PgCodecWithAttributes, PgResource } from "postgraphile/@dataplan/pg";
import type { GraphQLInputType, GraphQLOutputType } from "postgraphile/graphql";
import { oncePer } from "../engine/once-per.ts";

/** Whatever rows can be read from: tables, views, functions. */
export type Resource = GraphileBuild.BehaviorEntities["pgResource"];

/** A table or view, with the columns that a request can name. */
export type Table = PgResource<string, PgCodecWithAttributes>;

export type Codec = PgCodec;

export type Relation = PgCodecRelation;

export function isTable(resource: Resource): resource is Table {
  return !resource.parameters && Boolean(resource.codec.attributes) && !resource.isVirtual;
}

type Registry = GraphileBuild.BuildInput["pgRegistry"];

/** All that gives rows of this type: its table, and functions. */
export function resourcesOf(registry: Registry, codec: Codec): readonly Resource[] {
  return resourcesByRow(registry).get(codec) ?? [];
}

const resourcesByRow = oncePer(({ pgResources }: Registry) =>
  Map.groupBy(Object.values(pgResources) as Resource[], ({ codec }): Codec => codec),
);

/** `public.things`, for messages to whoever writes the SQL. */
export function sqlNameOf({ name, extensions }: Pick<Resource, "name" | "extensions">): string {
  return extensions?.pg ? `${extensions.pg.schemaName}.${extensions.pg.name}` : name;
}

/**
 * The columns that tell one row from all others: the primary key, or else columns that a constraint makes unique and that are
 * never null. Null for a view or a table without such.
 */
export function keyOf({ uniques, codec }: Table): readonly string[] | null {
  const key =
    uniques.find(({ isPrimary }) => isPrimary) ??
    uniques.find(
      ({ attributes, extensions }) =>
        !extensions?.isOfIndex && attributes.every((name) => codec.attributes[name]?.notNull),
    );
  return key?.attributes ?? null;
}

/** A function that returns several values, any of which may be null for all that SQL says; a row is there. */
export function mayHoldNulls({ parameters, codec, isUnique, extensions }: Resource): boolean {
  return Boolean(parameters) && !isUnique && !codec.attributes && !codec.notNull && !extensions?.tags?.notNull;
}

export function inputTypeOf({ getGraphQLTypeByPgCodec }: GraphileBuild.Build, codec: Codec): GraphQLInputType | null {
  return getGraphQLTypeByPgCodec(codec, "input") as GraphQLInputType | null;
}

export function outputTypeOf({ getGraphQLTypeByPgCodec }: GraphileBuild.Build, codec: Codec): GraphQLOutputType | null {
  return getGraphQLTypeByPgCodec(codec, "output") as GraphQLOutputType | null;
}
