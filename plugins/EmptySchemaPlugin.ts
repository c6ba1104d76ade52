import type {} from "postgraphile";
import { constant, type GrafastFieldConfig, type Step } from "postgraphile/grafast";
import { GraphQLBoolean, GraphQLNonNull } from "postgraphile/graphql";

declare global {
  namespace GraphileConfig {
    interface Plugins {
      EmptySchemaPlugin: true;
    }
  }
}

/** GraphQL has no type without fields, and no schema without queries. */
export const IS_EMPTY_FIELD: GrafastFieldConfig<Step> = {
  type: new GraphQLNonNull(GraphQLBoolean),
  description: "Your role was granted nothing here. A grant in SQL makes tables and functions appear.",
  plan: () => constant(true),
};

export const EmptySchemaPlugin: GraphileConfig.Plugin = {
  name: "EmptySchemaPlugin",
  description: "A database that shows nothing yet has a schema all the same, which says so",
  schema: {
    hooks: {
      GraphQLObjectType_fields(fields, build, { scope }) {
        if (!scope.isRootQuery || Object.keys(fields).length > 0) return fields;
        return build.extend(fields, { isEmpty: IS_EMPTY_FIELD }, "EmptySchemaPlugin");
      },
    },
  },
};
