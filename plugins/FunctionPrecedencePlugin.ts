import { memoizePerObject } from "#runtime";
import { relationFieldName } from "./relation-names.ts";
import {
  type Codec,
  type FieldScope,
  functionResourcesOf,
  type PgRelation,
  relationEntriesOf,
  type SchemaResource,
} from "./table.ts";

const inferredPhase = { after: ["inferred"], provides: ["functionPrecedence"] };

export const FunctionPrecedencePlugin: GraphileConfig.Plugin = {
  name: "FunctionPrecedencePlugin",
  description: "A function replaces a generated field of the same name",
  schema: {
    entityBehavior: {
      pgResource: {
        inferred: {
          ...inferredPhase,
          callback(behavior, resource, build) {
            if (resource.parameters) return behavior;
            return functionsAtRoot(build).has(build.inflection._allRows(resource))
              ? [behavior, "-query:resource:connection", "-query:resource:list"]
              : behavior;
          },
        },
      },
      pgResourceUnique: {
        inferred: {
          ...inferredPhase,
          callback: (behavior, [resource, unique], build) =>
            functionsAtRoot(build).has(build.inflection.rowByUnique({ resource, unique }))
              ? [behavior, "-query:resource:single"]
              : behavior,
        },
      },
      pgCodecAttribute: {
        inferred: {
          ...inferredPhase,
          callback: (behavior, [codec, attributeName], build) =>
            functionsOfType(build, codec).has(build.inflection.attribute({ codec, attributeName }))
              ? [behavior, "-attribute:select"]
              : behavior,
        },
      },
      pgCodecRelation: {
        inferred: {
          ...inferredPhase,
          callback(behavior, relation, build) {
            const field = fieldNameOf(relation, build);
            return field !== null && functionsOfType(build, relation.localCodec).has(field)
              ? [behavior, "-singularRelation:resource:single", "-manyRelation:resource:list"]
              : behavior;
          },
        },
      },
    },
  },
};

/** The name of a relation's field on its local table; null when the registry does not have the relation. */
function fieldNameOf(relation: PgRelation, build: GraphileBuild.Build): string | null {
  const registry = build.input.pgRegistry;
  const codec = relation.localCodec;
  const entry = relationEntriesOf(registry, codec).find(([, other]) => other === relation);
  return entry ? relationFieldName(build.inflection, { registry, codec, relationName: entry[0] }, relation) : null;
}

type FunctionsByField = ReadonlyMap<string, SchemaResource>;

const NO_FUNCTIONS: FunctionsByField = new Map();

/** The functions that are fields of the query type, by field name. */
function functionsAtRoot(build: GraphileBuild.Build): FunctionsByField {
  return functionsOf(build).root;
}

/** The functions that are fields of a row type, by field name. */
export function functionsOfType(build: GraphileBuild.Build, codec: Codec): FunctionsByField {
  return functionsOf(build).types.get(codec) ?? NO_FUNCTIONS;
}

/** The function that a field calls. The scope of a field that returns a single value does not name it. */
export function functionOfField(
  build: GraphileBuild.Build,
  { fieldName, fieldBehaviorScope, pgCodec, pgFieldResource }: FieldScope,
): SchemaResource | undefined {
  if (pgFieldResource?.parameters) return pgFieldResource;
  if (fieldBehaviorScope === "queryField:single") return functionsAtRoot(build).get(fieldName!);
  return fieldBehaviorScope === "typeField:single" ? functionsOfType(build, pgCodec!).get(fieldName!) : undefined;
}

type FunctionFields = { readonly root: FunctionsByField; readonly types: ReadonlyMap<Codec, FunctionsByField> };

const functionsOf = memoizePerObject((build: GraphileBuild.Build): FunctionFields => {
  const { behavior, inflection } = build;
  const root = new Map<string, SchemaResource>();
  const types = new Map<Codec, Map<string, SchemaResource>>();
  for (const resource of functionResourcesOf(build)) {
    if (behavior.pgResourceMatches(resource, "queryField"))
      root.set(inflection.customQueryField({ resource }), resource);
    const codec: Codec | undefined = resource.parameters[0]?.codec;
    if (!codec || !behavior.pgResourceMatches(resource, "typeField")) continue;
    types.set(codec, (types.get(codec) ?? new Map()).set(inflection.computedAttributeField({ resource }), resource));
  }
  return { root, types };
});
