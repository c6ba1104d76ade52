import { type PgResourceParameter, TYPES } from "@dataplan/pg";
import { memoizePerObject } from "#runtime";
import {
  assignUniqueNames,
  derivedTypeNames,
  functionFieldClaims,
  functionTypeClaims,
  rowNameClaims,
  typeClaims,
  uniqueNamesOf,
} from "./name-claims.ts";
import { relationNameOf } from "./relation-names.ts";
import type { Codec, SchemaResource } from "./table.ts";

declare global {
  namespace GraphileBuild {
    interface Inflection {
      /** The field with all rows. */
      allRowsOf(this: GraphileBuild.Inflection, thing: string): string;
      /** The base name of a function's input and connection. */
      functionType(this: GraphileBuild.Inflection, resource: SchemaResource): string;
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

/** Makes a registry name unique. Clients do not see it. */
const UNIQUE_SUFFIX = /~\d+/;

const CORE_CODEC_NAMES: ReadonlySet<string> = new Set(["ltree", ...Object.values(TYPES).map(({ name }) => name)]);

const UNNAMED_FIELD = "unnamed";

export const NamesPlugin: GraphileConfig.Plugin = {
  name: "NamesPlugin",
  description:
    "Names such as thing(id), things, and author for author_id, without the ByKey suffixes of core; of two objects with one name, the second is renamed",
  after: ["TransliterationPlugin"],
  inflection: {
    add: {
      allRowsOf(_preset, thing) {
        const things = this.pluralize(thing);
        return this.camelCase(things === thing ? `all-${thing}` : things);
      },
      functionType(_preset, resource) {
        return functionTypeNames.get(resource) ?? this.upperCamelCase(this._functionName({ resource }));
      },
    },
    replace: {
      // SQL names may have any characters; letters are transliterated already.
      coerceToGraphQLName(previous, _preset, name) {
        const coerced = previous!(name)
          .replace(/\W+/g, "_")
          .replace(/^(?=\d)/, "_");
        return /^_*$/.test(coerced) ? UNNAMED_FIELD : coerced;
      },
      // A number at the end has no plural.
      pluralize: (previous, _preset, word) => (/\d$/.test(word) ? word : previous!(word)),
      // Without its plural ending, `s` would have no letters.
      singularize: (previous, _preset, word) => previous!(word) || word,
      // PostGraphile names the column rowId and keeps id for its global ids.
      _attributeName(_previous, _preset, { attributeName, codec }) {
        return this.coerceToGraphQLName(codec.attributes[attributeName]?.extensions?.tags?.name ?? attributeName);
      },
      tableType(previous, _preset, codec) {
        const name = previous!(codec);
        return typeNames.get(codec) ?? (RESERVED_TYPE_NAMES.has(name) ? `${name}Record` : name);
      },
      // Core needs one name each for tables and functions, which may share one in Postgres.
      functionResourceName(previous, _preset, details) {
        const { pgProc } = details;
        const isTaken = pgProc.getNamespace()?.getClass({ name: pgProc.proname });
        const name = `${previous!(details)}${isTaken ? SHARED_NAME_SUFFIX : ""}`;
        return uniqueRegistryName(this, "resource", name, pgProc._id);
      },
      _functionName(previous, _preset, details) {
        return this.coerceToGraphQLName(withoutUniqueSuffix(previous!(details).replace(SHARED_NAME_SUFFIX, "")));
      },
      connectionField: (_previous, _preset, name) => name,
      listField: (_previous, _preset, name) => name,
      _allRows(_previous, _preset, resource) {
        return this.allRowsOf(this._singularizedResourceName(resource));
      },
      rowByUnique(_previous, _preset, { resource }) {
        return this.camelCase(this._singularizedResourceName(resource));
      },
      singleRelation(previous, _preset, details) {
        return relationNameOf(this, details) ?? previous!(details);
      },
      singleRelationBackwards(previous, _preset, details) {
        return relationNameOf(this, details) ?? previous!(details);
      },
      _manyRelation(previous, _preset, details) {
        return relationNameOf(this, details) ?? previous!(details);
      },
      classCodecName(previous, _preset, details) {
        return uniqueRegistryName(this, "codec", previous!(details), details.pgClass._id);
      },
      typeCodecName(previous, _preset, details) {
        return uniqueRegistryName(this, "codec", previous!(details), details.pgType._id);
      },
      functionRecordReturnCodecName(_previous, _preset, details) {
        const name = this.upperCamelCase(`${withoutUniqueSuffix(this.functionResourceName(details))}-record`);
        return uniqueRegistryName(this, "codec", name, details.pgProc._id);
      },
      tableResourceName(previous, _preset, details) {
        return uniqueRegistryName(this, "resource", previous!(details), details.pgClass._id);
      },
      resourceRelationName(previous, _preset, details) {
        const { localClass, localAttributes, foreignClass, foreignAttributes } = details;
        const numbers = [...localAttributes, ...foreignAttributes].map(({ attnum }) => attnum);
        // Two foreign keys of the same columns are one relation.
        const id = [foreignClass._id, ...numbers].join("_");
        return uniqueRegistryName(this, `relation of ${localClass._id}`, previous!(details), id);
      },
      _codecName(_previous, _preset, codec) {
        return this.coerceToGraphQLName(withoutUniqueSuffix(codec.name));
      },
      scalarCodecTypeName(_previous, _preset, codec) {
        const name = codec.extensions?.tags?.name ?? withoutUniqueSuffix(codec.name);
        return typeNames.get(codec) ?? this.upperCamelCase(this.coerceToGraphQLName(name));
      },
      _resourceName(_previous, _preset, resource) {
        return this.coerceToGraphQLName(resource.extensions?.tags?.name ?? withoutUniqueSuffix(resource.name));
      },
      _singularizedResourceName(previous, _preset, resource) {
        return resourceNames.get(resource) ?? this.coerceToGraphQLName(previous!(resource));
      },
      customQueryField: (previous, _preset, details) => resourceNames.get(details.resource) ?? previous!(details),
      customMutationField: (previous, _preset, details) => resourceNames.get(details.resource) ?? previous!(details),
      computedAttributeField(previous, _preset, details) {
        const { name, fieldName } = details.resource.extensions?.tags ?? {};
        const named =
          typeof name === "string" && typeof fieldName !== "string" ? this.camelCase(name) : previous!(details);
        return resourceNames.get(details.resource) ?? this.coerceToGraphQLName(named);
      },
      customMutationInput(_previous, _preset, { resource }) {
        return this.inputType(this.functionType(resource));
      },
      recordFunctionConnectionType(_previous, _preset, { resource }) {
        return this.connectionType(this.functionType(resource));
      },
      scalarFunctionConnectionType(_previous, _preset, { resource }) {
        return this.connectionType(this.functionType(resource));
      },
      recordFunctionEdgeType(_previous, _preset, { resource }) {
        return this.edgeType(this.functionType(resource));
      },
      scalarFunctionEdgeType(_previous, _preset, { resource }) {
        return this.edgeType(this.functionType(resource));
      },
      attribute(previous, _preset, { codec, attributeName }) {
        const nameOf = (attributeName: string) => previous!({ codec, attributeName });
        return columnNames(codec, nameOf).get(attributeName) ?? nameOf(attributeName);
      },
      argument(previous, _preset, details) {
        const nameOf = (param: (typeof details)["param"], index: number) => previous!({ ...details, param, index });
        return argumentNames(details.resource, nameOf).get(details.param) ?? previous!(details);
      },
    },
  },
  schema: {
    hooks: {
      init: {
        // Types that do not come from the database are registered by then and keep their names.
        after: ["pg-standard-types", "TimeScalarPlugin"],
        before: ["PgCodecs", "IndexedTablesPlugin"],
        callback(_, build) {
          for (const claims of functionFieldClaims(build, resourceNames)) assignUniqueNames(claims);
          assignUniqueNames(rowNameClaims(build, resourceNames));
          const derived = derivedTypeNames(build);
          const functions = functionTypeClaims(build, functionTypeNames);
          const claims = [...functions.inPlace, ...typeClaims(build, typeNames), ...functions.others];
          assignUniqueNames(claims, (name) => derived.has(name) || build.getTypeMetaByName(name) !== null);
          return _;
        },
      },
    },
  },
};

const ownersByInflection = new WeakMap<GraphileBuild.Inflection, Map<string, string>>();

/** The names that replace clashing ones. */
const typeNames = new WeakMap<Codec, string>();
const resourceNames = new WeakMap<SchemaResource, string>();
const functionTypeNames = new WeakMap<SchemaResource, string>();

const columnNames = memoizePerObject(
  (codec: Codec, nameOf: (column: string) => string): ReadonlyMap<string, string> =>
    uniqueNamesOf(Object.keys(codec.attributes ?? {}).map((column) => [nameOf(column), column])),
);

type NamedParameter = PgResourceParameter;

const argumentNames = memoizePerObject(
  (
    resource: SchemaResource,
    nameOf: (parameter: NamedParameter, index: number) => string,
  ): ReadonlyMap<NamedParameter, string> => {
    const parameters: readonly NamedParameter[] = resource.parameters;
    const hasId = parameters.some(({ name }) => name === "id");
    return uniqueNamesOf(
      parameters.map((parameter, index) => [nameOf(parameter, index), parameter]),
      // A mutation's `id` is an argument beside its input.
      (name) => name === "id" && resource.isMutation && !hasId,
    );
  },
);

/** Core needs unique names for all codecs, for all resources, and for the relations of one table; SQL does not. */
function uniqueRegistryName(inflection: GraphileBuild.Inflection, kind: string, name: string, id: string): string {
  const owners = ownersByInflection.get(inflection) ?? new Map<string, string>();
  ownersByInflection.set(inflection, owners);
  const preferred = name || "unnamed";
  const owner = owners.get(`${kind} ${preferred}`) ?? id;
  owners.set(`${kind} ${preferred}`, owner);
  const isCoreCodec = kind === "codec" && CORE_CODEC_NAMES.has(preferred);
  return owner === id && !isCoreCodec ? preferred : `${preferred}~${id}`;
}

function withoutUniqueSuffix(name: string): string {
  return name.replace(UNIQUE_SUFFIX, "");
}
