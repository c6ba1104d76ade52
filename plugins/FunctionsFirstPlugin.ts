import type {} from "postgraphile";
import { oncePer } from "../engine/once-per.ts";
import type { Codec, Relation, Resource } from "./table.ts";

declare global {
  namespace GraphileConfig {
    interface Plugins {
      FunctionsFirstPlugin: true;
    }
    interface Provides {
      functionsFirst: true;
    }
  }
}

const phase = { after: ["inferred"], provides: ["functionsFirst"] };

export const FunctionsFirstPlugin: GraphileConfig.Plugin = {
  name: "FunctionsFirstPlugin",
  description: "A function takes the place of what would be generated under its name",
  schema: {
    entityBehavior: {
      pgResource: {
        inferred: {
          ...phase,
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
          ...phase,
          callback: (behavior, [resource, unique], build) =>
            functionsAtRoot(build).has(build.inflection.rowByUnique({ resource, unique }))
              ? [behavior, "-query:resource:single"]
              : behavior,
        },
      },
      pgCodecAttribute: {
        inferred: {
          ...phase,
          callback: (behavior, [codec, attributeName], build) =>
            functionsOfType(build, codec).has(build.inflection.attribute({ codec, attributeName }))
              ? [behavior, "-attribute:select"]
              : behavior,
        },
      },
      pgCodecRelation: {
        inferred: {
          ...phase,
          callback(behavior, relation, build) {
            const field = fieldOfRelation(relation, build);
            return field !== null && functionsOfType(build, relation.localCodec).has(field)
              ? [behavior, "-singularRelation:resource:single", "-manyRelation:resource:list"]
              : behavior;
          },
        },
      },
    },
  },
};

/** What the field of a relation is called, on the table from which it leads; null where the registry has no such relation. */
function fieldOfRelation(relation: Relation, build: GraphileBuild.Build): string | null {
  const registry = build.input.pgRegistry;
  const { inflection } = build;
  const codec = relation.localCodec;
  const relations = Object.entries(registry.pgRelations[codec.name] ?? {});
  const relationName = relations.find(([, other]) => other === relation)?.[0];
  if (relationName === undefined) return null;
  const details = { registry, codec, relationName };
  if (!relation.isUnique) return inflection.manyRelationList(details);
  return relation.isReferencee ? inflection.singleRelationBackwards(details) : inflection.singleRelation(details);
}

type FunctionNames = { readonly root: ReadonlySet<string>; readonly types: ReadonlyMap<Codec, ReadonlySet<string>> };

const NONE: ReadonlySet<string> = new Set();

function functionsAtRoot(build: GraphileBuild.Build): ReadonlySet<string> {
  return namesOf(build).root;
}

function functionsOfType(build: GraphileBuild.Build, codec: Codec): ReadonlySet<string> {
  return namesOf(build).types.get(codec) ?? NONE;
}

const namesOf = oncePer(({ behavior, inflection, pgResources }: GraphileBuild.Build): FunctionNames => {
  const functions = Object.values(pgResources).filter(({ parameters }) => parameters) as Resource[];
  const root = functions
    .filter((resource) => behavior.pgResourceMatches(resource, "queryField"))
    .map((resource) => inflection.customQueryField({ resource }));
  const types = new Map<Codec, Set<string>>();
  for (const resource of functions) {
    const codec: Codec | undefined = resource.parameters[0]?.codec;
    if (!codec || !behavior.pgResourceMatches(resource, "typeField")) continue;
    types.set(codec, (types.get(codec) ?? new Set()).add(inflection.computedAttributeField({ resource })));
  }
  return { root: new Set(root), types };
});
