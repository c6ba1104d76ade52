import type {} from "postgraphile";
import { operationPlan } from "postgraphile/grafast";

declare global {
  namespace GraphileConfig {
    interface Plugins {
      SharedContextPlugin: true;
    }
  }
}

/** Only statements of the same context are joined; without this, what stands below a mutation would have one of its own. */
export const SharedContextPlugin: GraphileConfig.Plugin = {
  name: "SharedContextPlugin",
  description: "All steps of an operation ask Postgres in the same context, those after a side effect too",
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
