import type {} from "graphile-build-pg";
import { relationNamesOf } from "./relation-names.ts";

declare global {
  namespace GraphileConfig {
    interface Plugins {
      NamesPlugin: true;
    }
  }
}

/** Type names that GraphQL or this schema use, and that a table may have. */
const RESERVED_TYPE_NAMES: ReadonlySet<string> = new Set([
  "Query",
  "Mutation",
  "Subscription",
  "PageInfo",
  "Int",
  "Float",
  "String",
  "Boolean",
  "ID",
  "Time",
]);

/** Appended to the name of a function's resource when a table has that name. */
const SHARED_NAME_SUFFIX = "()";

export const NamesPlugin: GraphileConfig.Plugin = {
  name: "NamesPlugin",
  description: "Names such as thing(id), things, and author for author_id, without the ByKey suffixes of core",
  after: ["TransliterationPlugin"],
  inflection: {
    replace: {
      // SQL names may have any characters; letters are transliterated already.
      coerceToGraphQLName(previous, _preset, name) {
        return previous!(name)
          .replace(/\W+/g, "_")
          .replace(/^(?=\d)/, "_");
      },
      // A number at the end has no plural.
      pluralize: (previous, _preset, word) => (/\d$/.test(word) ? word : previous!(word)),
      // PostGraphile names it rowId and keeps id for its global ids.
      _attributeName(_previous, _preset, { attributeName, codec }) {
        return this.coerceToGraphQLName(codec.attributes[attributeName]?.extensions?.tags?.name ?? attributeName);
      },
      tableType(previous, _preset, codec) {
        const name = previous!(codec);
        return RESERVED_TYPE_NAMES.has(name) ? `${name}Record` : name;
      },
      // Core needs one name each for tables and functions, which may share one in Postgres.
      functionResourceName(previous, _preset, details) {
        const { pgProc } = details;
        const isTaken = pgProc.getNamespace()?.getClass({ name: pgProc.proname });
        return `${previous!(details)}${isTaken ? SHARED_NAME_SUFFIX : ""}`;
      },
      _functionName: (previous, _preset, details) => previous!(details).replace(SHARED_NAME_SUFFIX, ""),
      connectionField: (_previous, _preset, name) => name,
      listField: (_previous, _preset, name) => name,
      _allRows(_previous, _preset, resource) {
        const thing = this._singularizedResourceName(resource);
        const things = this.pluralize(thing);
        return this.camelCase(things === thing ? `all-${thing}` : things);
      },
      rowByUnique(_previous, _preset, { resource }) {
        return this.camelCase(this._singularizedResourceName(resource));
      },
      singleRelation(previous, _preset, details) {
        return relationTagOf(details, "fieldName") ?? relationNameOf(this, details) ?? previous!(details);
      },
      singleRelationBackwards(previous, _preset, details) {
        return (
          relationTagOf(details, "foreignSingleFieldName") ??
          relationTagOf(details, "foreignFieldName") ??
          relationNameOf(this, details) ??
          previous!(details)
        );
      },
      _manyRelation(previous, _preset, details) {
        return relationTagOf(details, "foreignFieldName") ?? relationNameOf(this, details) ?? previous!(details);
      },
    },
  },
};

type RelationDetails = GraphileBuild.PgRelationsPluginRelationDetails;

function relationNameOf(
  inflection: GraphileBuild.Inflection,
  { registry, codec, relationName }: RelationDetails,
): string | undefined {
  return relationNamesOf(codec, registry, inflection).get(relationName);
}

function relationTagOf(
  { registry, codec, relationName }: RelationDetails,
  tag: "fieldName" | "foreignFieldName" | "foreignSingleFieldName",
): string | undefined {
  const name = registry.pgRelations[codec.name]?.[relationName]?.extensions?.tags?.[tag];
  return typeof name === "string" ? name : undefined;
}
