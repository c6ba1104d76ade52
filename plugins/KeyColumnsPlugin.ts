import type {} from "postgraphile";
import type { PgCodecWithAttributes, PgSelectSingleStep } from "postgraphile/@dataplan/pg";
import type { GrafastFieldConfig, Step } from "postgraphile/grafast";
import { columnsShownAsRelations } from "./relation-names.ts";
import { type Codec, outputTypeOf, type Table } from "./table.ts";

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

type Build = GraphileBuild.Build;

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
          return keyColumns(build, row).reduce((all, column) => {
            const fieldName = freeName(all, build.inflection.attribute({ attributeName: column, codec: row }));
            const attribute = row.attributes[column]!;
            const field = fieldWithHooks({ fieldName, pgFieldAttribute: attribute }, () =>
              fieldOf(build, attribute.codec, column, row),
            );
            return build.extend(all, { [fieldName]: field }, `the column ${column} of ${row.name}`);
          }, fields);
        },
      },
    },
  },
};

/** Those that are no fields yet, and no rows themselves. */
function keyColumns(build: Build, row: PgCodecWithAttributes): string[] {
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
function freeName(fields: object, wanted: string): string {
  let name = Object.hasOwn(fields, wanted) && !wanted.endsWith("Id") ? `${wanted}Id` : wanted;
  while (Object.hasOwn(fields, name)) name += "_";
  return name;
}

function fieldOf(build: Build, codec: Codec, column: string, row: PgCodecWithAttributes): GrafastFieldConfig<Step> {
  const { description, notNull, extensions } = row.attributes[column]!;
  const [, type] = build.pgResolveOutputType(codec, notNull || extensions?.tags?.notNull)!;
  return { description, type, plan: ($row) => ($row as PgSelectSingleStep<Table>).get(column) };
}
