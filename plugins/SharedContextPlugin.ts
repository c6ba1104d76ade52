import { operationPlan } from "grafast";
import type {} from "graphile-build-pg";

declare global {
  namespace GraphileConfig {
    interface Plugins {
      SharedContextPlugin: true;
    }
  }
}

/** Statements are joined only if their context is the same; without this plugin, steps below a mutation have another context. */
export const SharedContextPlugin: GraphileConfig.Plugin = {
  name: "SharedContextPlugin",
  description: "All steps of an operation use the same context, also after a side effect",
  schema: {
    hooks: {
      init(_, { input }) {
        for (const executor of Object.values(input.pgRegistry.pgExecutors)) {
          const contextHere = executor.context.bind(executor);
          executor.context = () => operationPlan().withRootLayerPlan(contextHere);
        }
        return _;
      },
    },
  },
};
