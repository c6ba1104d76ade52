import type {} from "graphile-build-pg";

declare global {
  namespace GraphileConfig {
    interface Plugins {
      UnloggedTablesPlugin: true;
    }
  }
}

export const UnloggedTablesPlugin: GraphileConfig.Plugin = {
  name: "UnloggedTablesPlugin",
  description: "Unlogged tables are part of the schema; core omits them",
  gather: {
    hooks: {
      pgIntrospection_introspection(_info, { introspection }) {
        for (const entity of introspection.classes) {
          if (entity.relpersistence === "u") entity.relpersistence = "p";
        }
      },
    },
  },
};
