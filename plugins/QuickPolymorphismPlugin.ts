import type {} from "postgraphile";
import { PgPolymorphismPlugin } from "postgraphile/graphile-build-pg";
import { oncePer } from "../engine/once-per.ts";

declare global {
  namespace GraphileConfig {
    interface Plugins {
      QuickPolymorphismPlugin: true;
    }
  }
}

type Hooks = NonNullable<NonNullable<GraphileConfig.Plugin["schema"]>["hooks"]>;
type InterfacesHook = Extract<Hooks["GraphQLObjectType_interfaces"], (...given: never[]) => unknown>;
type Registry = GraphileBuild.BuildInput["pgRegistry"];

const { name, description, schema } = PgPolymorphismPlugin;
const addInterfaces = schema!.hooks!.GraphQLObjectType_interfaces as InterfacesHook;

/** For each type core looks among all types of rows for those that are polymorphic, of which most databases have none. */
export const QuickPolymorphismPlugin: GraphileConfig.Plugin = {
  ...PgPolymorphismPlugin,
  name: "QuickPolymorphismPlugin",
  description: `${description ?? name}, in a time that does not grow with the square of the number of tables`,
  provides: [name],
  schema: {
    ...schema,
    hooks: {
      ...schema!.hooks,
      GraphQLObjectType_interfaces(interfaces, build, context) {
        const isNamed = context.scope.pgCodec?.extensions?.tags?.implements !== undefined;
        if (!isNamed && !hasPolymorphism(build.input.pgRegistry)) return interfaces;
        return addInterfaces(interfaces, build, context);
      },
    },
  },
};

const hasPolymorphism = oncePer(({ pgCodecs }: Registry) =>
  Object.values(pgCodecs).some(({ polymorphism }) => polymorphism !== undefined),
);
