import type { PgCodecWithAttributes } from "@dataplan/pg";
import type { GrafastFieldConfig, Step } from "grafast";
import { columnsShownAsRelations } from "./relation-names.ts";
import { type Codec, hasChildren, isTable, outputTypeOf, relationEntriesOf, resourcesOf } from "./table.ts";

declare global {
  namespace DataplanPg {
    interface PgCodecRelationExtensions {
      /** A temporal foreign key: its rows do not match by equality. */
      isTemporal?: boolean;
    }
    interface PgResourceExtensions {
      /** Several rows may have the same key: those of a view, or of a table and of tables that inherit from it. */
      mayRepeatKeys?: boolean;
    }
    interface PgResourceUniqueExtensions {
      /** A unique index and not a constraint. */
      isFromIndex?: true;
    }
  }
  namespace GraphileBuild {
    interface BehaviorStrings {
      /** A foreign-key column that is shown as a relation is a field as well. */
      "key:attribute:select": true;
    }
  }
}

export const ForeignKeysPlugin: GraphileConfig.Plugin = {
  name: "ForeignKeysPlugin",
  description:
    "A foreign key is read as a relation and written as an id; its column is a field too, under a unique name",
  gather: {
    hooks: {
      // The referenced columns are unique, possibly by an index, which core ignores.
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
        if (hasChildren(pgClass) || !/[rp]/.test(pgClass.relkind))
          resourceOptions.extensions = { ...resourceOptions.extensions, mayRepeatKeys: true };
      },
      // The constraint's comment is the message for its violation, and no description.
      pgRelations_relation(_info, { pgConstraint, relation }) {
        if (pgConstraint.conperiod) relation.extensions = { ...relation.extensions, isTemporal: true };
        const { localCodec, localAttributes, isReferencee, extensions } = relation;
        if (isReferencee) return;
        const [column] = localAttributes.length === 1 ? localAttributes : [];
        const tagged = extensions?.tags?.forwardDescription;
        const description = typeof tagged === "string" ? tagged : column && localCodec.attributes[column]?.description;
        if (description) relation.description = description;
        else delete relation.description;
      },
    },
  },
  schema: {
    behaviorRegistry: {
      add: {
        "key:attribute:select": {
          description: "is this foreign-key column a field beside its relation?",
          entities: ["pgCodecAttribute"],
        },
      },
    },
    hooks: {
      GraphQLObjectType_fields: {
        // All other fields keep their names.
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
    entityBehavior: {
      pgCodecRelation: {
        inferred: {
          after: ["inferred"],
          provides: ["foreignKeys"],
          callback(behavior, { isReferencee, remoteResource, localCodec, extensions }, build) {
            if (extensions?.isTemporal) {
              return [behavior, "-singularRelation:resource:single", "-manyRelation:resource:list"];
            }
            // The column may be for clients and have the relation's name.
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
            const isShown = relationEntriesOf(build.input.pgRegistry, codec).some(
              ([, relation]) =>
                !relation.isReferencee &&
                relation.localAttributes.join() === column &&
                build.behavior.pgCodecRelationMatches(relation, "singularRelation:resource:single"),
            );
            if (!isShown) return behavior;
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

/** Foreign-key columns that are no fields yet. */
function hiddenKeyColumns(build: GraphileBuild.Build, row: PgCodecWithAttributes): string[] {
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

/** `parentId` for a column `parent` whose name the relation has; `parentId_` where that is taken. */
function uniqueFieldName(fields: object, preferred: string): string {
  let name = Object.hasOwn(fields, preferred) && !preferred.endsWith("Id") ? `${preferred}Id` : preferred;
  while (Object.hasOwn(fields, name)) name += "_";
  return name;
}

function keyColumnField(
  build: GraphileBuild.Build,
  codec: Codec,
  column: string,
  row: PgCodecWithAttributes,
): GrafastFieldConfig<Step> {
  const { description, notNull, extensions } = row.attributes[column]!;
  const [, type] = build.pgResolveOutputType(codec, notNull || extensions?.tags?.notNull)!;
  return { description, type };
}
