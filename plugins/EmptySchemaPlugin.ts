import { GraphQLBoolean, type GraphQLFieldConfig, GraphQLNonNull } from "grafast/graphql";
import { withSource } from "./field-sources.ts";

const FIELD: GraphQLFieldConfig<unknown, unknown> = {
  type: new GraphQLNonNull(GraphQLBoolean),
  description:
    "Your role has no privileges in the exposed schemas. Grant some in SQL to see tables and functions here.",
};

/** GraphQL requires a query type with at least one field. */
export const IS_EMPTY_FIELD = withSource(FIELD, { kind: "constant", text: "true" });

export const EmptySchemaPlugin: GraphileConfig.Plugin = {
  name: "EmptySchemaPlugin",
  description: "A database without visible objects has a schema with the field isEmpty",
  schema: {
    hooks: {
      GraphQLObjectType_fields(fields, build, { scope }) {
        if (!scope.isRootQuery || Object.keys(fields).length > 0) return fields;
        return build.extend(fields, { isEmpty: IS_EMPTY_FIELD }, "EmptySchemaPlugin");
      },
    },
  },
};
