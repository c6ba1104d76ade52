import type {} from "postgraphile";
import type { PgResourceParameter } from "postgraphile/@dataplan/pg";
import type { GraphQLArgumentConfig } from "postgraphile/graphql";
import { reasonFor } from "./deprecation.ts";
import { withoutHoles } from "./list-items.ts";
import type { Resource } from "./table.ts";

declare global {
  namespace GraphileConfig {
    interface Plugins {
      FunctionArgumentsPlugin: true;
    }
  }
  namespace GraphileBuild {
    interface PgResourceTags {
      /** `limit Use first.`: an argument that clients should stop sending, and why. */
      deprecatedArgument: string | string[];
    }
  }
}

type DetailsOf = GraphileBuild.Build["pgGetArgDetailsFromParameters"];

export const FunctionArgumentsPlugin: GraphileConfig.Plugin = {
  name: "FunctionArgumentsPlugin",
  description: "Arguments of functions show SQL's defaults and deprecations; their lists have no holes",
  schema: {
    hooks: {
      build: {
        after: ["PgCustomTypeFieldPlugin"],
        callback(build) {
          build.pgGetArgDetailsFromParameters = describing(build.pgGetArgDetailsFromParameters!);
          return build;
        },
      },
    },
  },
};

function describing(detailsOf: DetailsOf): DetailsOf {
  return (resource, parameters = resource.parameters, offset = 0) => {
    const details = detailsOf(resource, parameters, offset);
    const described = details.argDetails.map((argument, index) => [
      argument.graphqlArgName,
      describe(resource, (parameters as readonly PgResourceParameter[])[offset + index]!, argument),
    ]);
    return { ...details, makeFieldArgs: () => Object.fromEntries(described) };
  };
}

type Argument = ReturnType<DetailsOf>["argDetails"][number];

function describe(resource: Resource, { extensions }: PgResourceParameter, argument: Argument): GraphQLArgumentConfig {
  const reason = reasonFor(resource.extensions?.tags?.deprecatedArgument, argument.graphqlArgName);
  return {
    type: withoutHoles(argument.inputType),
    ...(extensions?.default !== undefined && { defaultValue: extensions.default }),
    // GraphQL does not let what is required be deprecated.
    ...(reason !== undefined && argument.optional && { deprecationReason: reason }),
  };
}
