import type { PgCodecWithAttributes, PgSelectSingleStep } from "postgraphile/@dataplan/pg";
import type { GrafastFieldConfig, Step } from "postgraphile/grafast";
import { columnsShownAsRelations } from "./relation-names.ts";
import { type Codec, isTable, outputTypeOf, type PgTable, resourcesOf } from "./table.ts";

export const KeyColumnsPlugin: GraphileConfig.Plugin = {
  name: "KeyColumnsPlugin",
  description: "The columns of foreign keys are fields too, by names that nothing else has",
  schema: {
    behaviorRegistry: {
      add: {
        "key:attribute:select": {
          description: "can this column of a foreign key be selected beside what it refers to?",
          entities: ["pgCodecAttribute"],
        },
      },
    },
    hooks: {
      GraphQLObjectType_fields: {
        // Whatever else is a field keeps its name.
        after: ["PgAttributesPlugin", "PgRelationsPlugin", "PgRefsPlugin", "PgCustomTypeFieldPlugin"],
        callback(fields, build, { scope: { pgCodec, isPgClassType }, fieldWithHooks }) {
          if (!isPgClassType || !pgCodec?.attributes) return fields;
          const row = pgCodec as PgCodecWithAttributes;
          return hiddenKeyColumns(build, row).reduce((all, column) => {
            const fieldName = uniqueFieldName(all, build.inflection.attribute({ attributeName: column, codec: row }));
            const attribute = row.attributes[column]!;
            const field = fieldWithHooks({ fieldName, pgFieldAttribute: attribute }, () =>
              keyColumnField(build, attribute.codec, column, row),
            );
            return build.extend(all, { [fieldName]: field }, `the column ${column} of ${row.name}`);
          }, fields);
        },
      },
    },
  },
};

declare global {
  namespace GraphileConfig {
    interface Plugins {
      ForeignKeysPlugin: true;
    }
  }
  namespace DataplanPg {
    interface PgCodecRelationExtensions {
      /** Its rows do not go together by equal values. */
      isTemporal?: boolean;
    }
    interface PgResourceUniqueExtensions {
      /** An index makes it unique, which is no constraint. */
      isFromIndex?: true;
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
          if (!isKnown) uniques.push({ attributes: columns, extensions: { isFromIndex: true } });
        }
        resourceOptions.uniques = uniques;
      },
      // The comment on the constraint says what is wrong when it is broken.
      pgRelations_relation(_info, { pgConstraint, relation }) {
        if (pgConstraint.conperiod) relation.extensions = { ...relation.extensions, isTemporal: true };
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
            if (extensions?.isTemporal) {
              return [behavior, "-singularRelation:resource:single", "-manyRelation:resource:list"];
            }
            // Its column may have its name, and is for clients.
            return !isReferencee && remoteResource.extensions?.isServerOnly && !isServerOnlyRow(build, localCodec)
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

function isServerOnlyRow({ input }: GraphileBuild.Build, codec: Codec): boolean {
  return resourcesOf(input.pgRegistry, codec).find(isTable)?.extensions?.isServerOnly === true;
}

declare global {
  namespace GraphileConfig {
    interface Plugins {
      KeyColumnsPlugin: true;
    }
  }
  namespace GraphileBuild {
    interface BehaviorStrings {
      /** A column that ForeignKeysPlugin shows as what it refers to is a field as well. */
      "key:attribute:select": true;
    }
  }
}

type SchemaBuild = GraphileBuild.Build;

/** Those that are no fields yet, and no rows themselves. */
function hiddenKeyColumns(build: SchemaBuild, row: PgCodecWithAttributes): string[] {
  const { behavior, input } = build;
  return [...columnsShownAsRelations(row, input.pgRegistry)].filter((column) => {
    const { codec } = row.attributes[column]!;
    return (
      !codec.attributes &&
      outputTypeOf(build, codec) !== null &&
      !behavior.pgCodecAttributeMatches([row, column], "attribute:select") &&
      behavior.pgCodecAttributeMatches([row, column], "key:attribute:select")
    );
  });
}

/** `parentId` of a column `parent`, whose name has what it refers to; `parentId_` where that is taken. */
function uniqueFieldName(fields: object, wanted: string): string {
  let name = Object.hasOwn(fields, wanted) && !wanted.endsWith("Id") ? `${wanted}Id` : wanted;
  while (Object.hasOwn(fields, name)) name += "_";
  return name;
}

function keyColumnField(
  build: SchemaBuild,
  codec: Codec,
  column: string,
  row: PgCodecWithAttributes,
): GrafastFieldConfig<Step> {
  const { description, notNull, extensions } = row.attributes[column]!;
  const [, type] = build.pgResolveOutputType(codec, notNull || extensions?.tags?.notNull)!;
  return { description, type, plan: ($row) => ($row as PgSelectSingleStep<PgTable>).get(column) };
}
