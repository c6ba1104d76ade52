import type {} from "postgraphile";
import { PgTablesPlugin } from "postgraphile/graphile-build-pg";
import { type Codec, resourcesOf } from "./table.ts";

declare global {
  namespace GraphileConfig {
    interface Plugins {
      QuickTablesPlugin: true;
    }
  }
}

const { name, description, schema } = PgTablesPlugin;
const registerTypes = schema!.hooks!.init as GraphileBuild.Hook<object, GraphileBuild.ContextInit>;

/** For each type of row core looks through all resources for its table. So it is given one type at a time, with its own resources. */
export const QuickTablesPlugin: GraphileConfig.Plugin = {
  ...PgTablesPlugin,
  name: "QuickTablesPlugin",
  description: `${description}, in a time that does not grow with the square of their number`,
  provides: [name],
  schema: {
    ...schema,
    hooks: {
      ...schema!.hooks,
      init(_, build, context) {
        const { pgCodecMetaLookup } = build as typeof build & { readonly pgCodecMetaLookup: Map<Codec, unknown> };
        for (const [codec, meta] of pgCodecMetaLookup) {
          const own = resourcesOf(build.input.pgRegistry, codec).map((resource) => [resource.name, resource]);
          const narrowed = { pgCodecMetaLookup: new Map([[codec, meta]]), pgResources: Object.fromEntries(own) };
          registerTypes(_, { ...build, ...narrowed } as typeof build, context);
        }
        return _;
      },
    },
  },
};
