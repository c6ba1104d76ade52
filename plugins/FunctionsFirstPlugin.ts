import type {} from "postgraphile";
import { oncePer } from "../engine/once-per.ts";
import type { Codec, Resource } from "./table.ts";

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
            const registry = build.input.pgRegistry;
            const codec = relation.localCodec;
            const [relationName] =
              Object.entries(registry.pgRelations[codec.name] ?? {}).find(([, it]) => it === relation) ?? [];
            if (relationName === undefined) return behavior;
            const details = { registry, codec, relationName };
            const { inflection } = build;
            const name = relation.isUnique
              ? relation.isReferencee
                ? inflection.singleRelationBackwards(details)
                : inflection.singleRelation(details)
              : inflection.manyRelationList(details);
            return functionsOfType(build, codec).has(name)
              ? [behavior, "-singularRelation:resource:single", "-manyRelation:resource:list"]
              : behavior;
          },
        },
      },
    },
  },
};

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
