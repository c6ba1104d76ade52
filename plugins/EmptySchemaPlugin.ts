import type {} from "postgraphile";
import { constant } from "postgraphile/grafast";
import { GraphQLBoolean, GraphQLNonNull } from "postgraphile/graphql";

declare global {
  namespace GraphileConfig {
    interface Plugins {
      EmptySchemaPlugin: true;
    }
  }
}

export const EmptySchemaPlugin: GraphileConfig.Plugin = {
  name: "EmptySchemaPlugin",
  description: "A database that shows nothing yet has a schema all the same, which says so",
  schema: {
    hooks: {
      GraphQLObjectType_fields(fields, build, { scope }) {
        if (!scope.isRootQuery || Object.keys(fields).length > 0) return fields;
        const isEmpty = {
          type: new GraphQLNonNull(GraphQLBoolean),
          description:
            "No role of this interface was granted anything here. A grant in SQL makes tables and functions appear.",
          plan: () => constant(true),
        };
        return build.extend(fields, { isEmpty }, "EmptySchemaPlugin");
      },
    },
  },
};
