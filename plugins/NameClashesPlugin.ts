import type {} from "postgraphile";
import type { PgResourceParameter } from "postgraphile/@dataplan/pg";
import { oncePer } from "../engine/once-per.ts";
import { settleNames } from "./free-names.ts";
import { freeRelationName } from "./free-relation-names.ts";
import { derivedTypes, functionClaims, functionTypeClaims, thingClaims, typeClaims } from "./name-claims.ts";
import { registryName, withoutMark } from "./registry-names.ts";
import type { Codec, Resource } from "./table.ts";

declare global {
  namespace GraphileConfig {
    interface Plugins {
      NameClashesPlugin: true;
    }
  }
  namespace GraphileBuild {
    interface Inflection {
      /** The collection of such things. */
      allRowsOf(this: Inflection, thing: string): string;
      /** What the input and the connection of a function are named after. */
      functionType(this: Inflection, resource: Resource): string;
    }
  }
}

/** Who had to be renamed, to what. */
const types = new WeakMap<Codec, string>();
const names = new WeakMap<Resource, string>();
const functionTypes = new WeakMap<Resource, string>();

const UNNAMED = "unnamed";

export const NameClashesPlugin: GraphileConfig.Plugin = {
  name: "NameClashesPlugin",
  description: "Of two things that would have one name in GraphQL, the second is renamed",
  after: ["NamesPlugin"],
  inflection: {
    add: {
      allRowsOf(_preset, thing) {
        const things = this.pluralize(thing);
        return this.camelCase(things === thing ? `all-${thing}` : things);
      },
      functionType(_preset, resource) {
        return functionTypes.get(resource) ?? this.upperCamelCase(this._functionName({ resource }));
      },
    },
    replace: {
      classCodecName(previous, _preset, details) {
        return registryName(this, "codec", previous!(details), details.pgClass._id);
      },
      typeCodecName(previous, _preset, details) {
        return registryName(this, "codec", previous!(details), details.pgType._id);
      },
      functionRecordReturnCodecName(_previous, _preset, details) {
        const name = this.upperCamelCase(`${withoutMark(this.functionResourceName(details))}-record`);
        return registryName(this, "codec", name, details.pgProc._id);
      },
      tableResourceName(previous, _preset, details) {
        return registryName(this, "resource", previous!(details), details.pgClass._id);
      },
      functionResourceName(previous, _preset, details) {
        return registryName(this, "resource", previous!(details), details.pgProc._id);
      },
      resourceRelationName(previous, _preset, details) {
        const { localClass, localAttributes, foreignClass, foreignAttributes } = details;
        const numbers = [...localAttributes, ...foreignAttributes].map(({ attnum }) => attnum);
        // Two foreign keys of the same columns are one relation.
        const id = [foreignClass._id, ...numbers].join("_");
        return registryName(this, `relation of ${localClass._id}`, previous!(details), id);
      },
      coerceToGraphQLName(previous, _preset, name) {
        const coerced = previous!(name);
        return /^_*$/.test(coerced) ? UNNAMED : coerced;
      },
      _codecName(_previous, _preset, codec) {
        return this.coerceToGraphQLName(withoutMark(codec.name));
      },
      scalarCodecTypeName(_previous, _preset, codec) {
        const name = codec.extensions?.tags?.name ?? withoutMark(codec.name);
        return types.get(codec) ?? this.upperCamelCase(this.coerceToGraphQLName(name));
      },
      tableType: (previous, _preset, codec) => types.get(codec) ?? previous!(codec),
      _resourceName(_previous, _preset, resource) {
        return this.coerceToGraphQLName(resource.extensions?.tags?.name ?? withoutMark(resource.name));
      },
      _singularizedResourceName(previous, _preset, resource) {
        return names.get(resource) ?? this.coerceToGraphQLName(previous!(resource));
      },
      _functionName(previous, _preset, details) {
        return this.coerceToGraphQLName(withoutMark(previous!(details)));
      },
      customQueryField: (previous, _preset, details) => names.get(details.resource) ?? previous!(details),
      customMutationField: (previous, _preset, details) => names.get(details.resource) ?? previous!(details),
      computedAttributeField(previous, _preset, details) {
        const { name, fieldName } = details.resource.extensions?.tags ?? {};
        const named =
          typeof name === "string" && typeof fieldName !== "string" ? this.camelCase(name) : previous!(details);
        return names.get(details.resource) ?? this.coerceToGraphQLName(named);
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
      singleRelation(previous, _preset, details) {
        return freeRelationName(this, details, previous!(details));
      },
      singleRelationBackwards(previous, _preset, details) {
        return freeRelationName(this, details, previous!(details));
      },
      _manyRelation(previous, _preset, details) {
        return freeRelationName(this, details, previous!(details));
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
        // All that needs no database is registered by then, and keeps its name.
        after: ["pg-standard-types", "TimeScalarPlugin"],
        before: ["PgCodecs", "QuickTablesPlugin"],
        callback(_, build) {
          for (const claims of functionClaims(build, names)) settleNames(claims);
          settleNames(thingClaims(build, names));
          const derived = derivedTypes(build);
          const functions = functionTypeClaims(build, functionTypes);
          const claims = [...functions.inPlace, ...typeClaims(build, types), ...functions.others];
          settleNames(claims, (name) => derived.has(name) || build.getTypeMetaByName(name) !== null);
          return _;
        },
      },
    },
  },
};

const columnNames = oncePer((codec: Codec, nameOf: (column: string) => string): ReadonlyMap<string, string> => {
  const found = new Map<string, string>();
  settleNames(
    Object.keys(codec.attributes ?? {}).map((column) => ({
      wanted: nameOf(column),
      suffix: "_",
      needs: (name) => [name],
      rename: (name) => found.set(column, name),
    })),
  );
  return found;
});

type Parameter = PgResourceParameter;

const argumentNames = oncePer(
  (resource: Resource, nameOf: (parameter: Parameter, index: number) => string): ReadonlyMap<Parameter, string> => {
    const found = new Map<Parameter, string>();
    const hasId = resource.parameters.some(({ name }: Parameter) => name === "id");
    settleNames(
      (resource.parameters as readonly Parameter[]).map((parameter, index) => ({
        wanted: nameOf(parameter, index),
        suffix: "_",
        needs: (name) => [name],
        rename: (name) => found.set(parameter, name),
      })),
      // A mutation takes the one of exactly that name beside its input, and all others in it.
      (name) => name === "id" && resource.isMutation && !hasId,
    );
    return found;
  },
);
