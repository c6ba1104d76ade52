import type {} from "postgraphile";
import { columnsShownAsRelations } from "./relation-names.ts";
import { type Codec, isTable, resourcesOf } from "./table.ts";

declare global {
  namespace GraphileConfig {
    interface Plugins {
      ForeignKeysPlugin: true;
    }
  }
  namespace DataplanPg {
    interface PgCodecRelationExtensions {
      /** Its rows do not go together by equal values. */
      isOfPeriods?: boolean;
    }
    interface PgResourceUniqueExtensions {
      /** An index makes it unique, which is no constraint. */
      isOfIndex?: true;
    }
  }
}

export const ForeignKeysPlugin: GraphileConfig.Plugin = {
  name: "ForeignKeysPlugin",
  description: "A foreign key is read as the thing it refers to, and written as an id",
  gather: {
    hooks: {
      // What a foreign key refers to is unique, be it by an index, of which core knows nothing.
      pgTables_PgResourceOptions(_info, { pgClass, resourceOptions }) {
        const referenced = pgClass
          .getForeignConstraints()
          .map((key) => key.getForeignAttributes()?.map(({ attname }) => attname) ?? [])
          .filter((columns) => columns.length > 0);
        const uniques = [...(resourceOptions.uniques ?? [])];
        for (const columns of referenced) {
          const isKnown = uniques.some(({ attributes }) => attributes.every((column) => columns.includes(column)));
          if (!isKnown) uniques.push({ attributes: columns, extensions: { isOfIndex: true } });
        }
        resourceOptions.uniques = uniques;
      },
      // The comment on the constraint says what is wrong when it is broken.
      pgRelations_relation(_info, { pgConstraint, relation }) {
        if (pgConstraint.conperiod) relation.extensions = { ...relation.extensions, isOfPeriods: true };
        const { localCodec, localAttributes, isReferencee, extensions } = relation;
        if (isReferencee) return;
        const [column] = localAttributes.length === 1 ? localAttributes : [];
        const said = extensions?.tags?.forwardDescription;
        const description = typeof said === "string" ? said : column && localCodec.attributes[column]?.description;
        if (description) relation.description = description;
        else delete relation.description;
      },
    },
  },
  schema: {
    entityBehavior: {
      pgCodecRelation: {
        inferred: {
          after: ["inferred"],
          provides: ["foreignKeys"],
          callback(behavior, { isReferencee, remoteResource, localCodec, extensions }, build) {
            if (extensions?.isOfPeriods) {
              return [behavior, "-singularRelation:resource:single", "-manyRelation:resource:list"];
            }
            // Its column may have its name, and is for clients.
            return !isReferencee && remoteResource.extensions?.isForServers && !isForServers(build, localCodec)
              ? [behavior, "-singularRelation:resource:single"]
              : behavior;
          },
        },
      },
      pgCodecAttribute: {
        inferred: {
          after: ["inferred"],
          provides: ["foreignKeys"],
          callback(behavior, [codec, column], build) {
            if (!columnsShownAsRelations(codec, build.input.pgRegistry).has(column)) return behavior;
            const relations = Object.values(build.pgRelations[codec.name] ?? {});
            const shown = relations.some(
              (relation) =>
                !relation.isReferencee &&
                relation.localAttributes.join() === column &&
                build.behavior.pgCodecRelationMatches(relation, "singularRelation:resource:single"),
            );
            if (!shown) return behavior;
            const { canSelect } = codec.attributes[column]!.extensions ?? {};
            return [behavior, "-attribute:select", ...(canSelect === false ? [] : ["key:attribute:select" as const])];
          },
        },
      },
    },
  },
};

function isForServers({ input }: GraphileBuild.Build, codec: Codec): boolean {
  return resourcesOf(input.pgRegistry, codec).find(isTable)?.extensions?.isForServers === true;
}
