import { isEnumCodec, type PgEnumCodec } from "@dataplan/pg";
import type { GraphQLEnumValueConfigMap } from "grafast/graphql";
import { deprecationReasonOfPart } from "./graphql-types.ts";

declare global {
  namespace GraphileConfig {
    interface Plugins {
      EnumsPlugin: true;
    }
  }
  namespace GraphileBuild {
    interface PgCodecTags {
      /** `ARCHIVED Delete it instead.`: a deprecated value and the reason. */
      deprecatedValue: string | string[];
    }
  }
}

/** GraphQL does not allow these as enum values. */
const RESERVED_VALUES: ReadonlySet<string> = new Set(["true", "false", "null"]);

export const EnumsPlugin: GraphileConfig.Plugin = {
  name: "EnumsPlugin",
  description: "Labels of enums become valid names, and can be deprecated",
  inflection: {
    replace: {
      // Core looks the label up in a table of symbols that inherits from Object.prototype.
      enumValue(previous, _preset, label, codec) {
        return label in Object.prototype ? this.coerceToGraphQLName(label) : previous!(label, codec);
      },
    },
  },
  schema: {
    hooks: {
      init: {
        before: ["PgCodecs"],
        callback(_, build) {
          for (const codec of build.allPgCodecs) {
            if (!isEnumCodec(codec)) continue;
            const name = build.inflection.enumType(codec);
            build.registerEnumType(
              name,
              {},
              () => ({ description: codec.description, values: enumValuesOf(build.inflection, codec) }),
              `the type ${codec.extensions?.pg?.schemaName}.${codec.extensions?.pg?.name}`,
            );
            build.setGraphQLTypeForPgCodec(codec, ["input", "output"], name);
          }
          return _;
        },
      },
    },
  },
};

function enumValuesOf(inflection: GraphileBuild.Inflection, codec: PgEnumCodec): GraphQLEnumValueConfigMap {
  const values: GraphQLEnumValueConfigMap = {};
  for (const { value: label } of codec.values) {
    const deprecationReason = deprecationReasonOfPart(codec.extensions?.tags?.deprecatedValue, label);
    const name = uniqueValueName(inflection.enumValue(label, codec), values);
    values[name] = { value: label, ...(deprecationReason !== undefined && { deprecationReason }) };
  }
  return values;
}

function uniqueValueName(preferred: string, values: GraphQLEnumValueConfigMap): string {
  const name = RESERVED_VALUES.has(preferred) ? `${preferred}_` : preferred;
  if (!Object.hasOwn(values, name)) return name;
  let number = 2;
  while (Object.hasOwn(values, `${name}_${number}`)) number += 1;
  return `${name}_${number}`;
}
