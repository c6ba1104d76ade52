import type {} from "postgraphile";
import { gatherConfig } from "postgraphile/graphile-build";
import type { PgProc } from "postgraphile/graphile-build-pg/pg-introspection";
import { chooseFunctions } from "./callable-functions.ts";
import type { LeftOut } from "./left-out.ts";
import { signatureOf } from "./sql-names.ts";

declare global {
  namespace GraphileConfig {
    interface Plugins {
      CallableFunctionsPlugin: true;
    }
    interface GatherHelpers {
      callableFunctions: Record<string, never>;
    }
  }
  namespace GraphileBuild {
    interface BuildInput {
      /** Functions that clients may execute and the schema does not have. */
      leftOutFunctions?: readonly LeftOut[];
    }
  }
}

type State = {
  procs: readonly PgProc[];
  leftOut: readonly LeftOut[];
  /** Names that several of them have. */
  shared: ReadonlySet<string>;
  /** Those that have become resources. */
  readonly resources: Set<PgProc>;
};

export const CallableFunctionsPlugin: GraphileConfig.Plugin = {
  name: "CallableFunctionsPlugin",
  description:
    "Of functions those that clients may execute and GraphQL can call; of several by one name the first, and those that a comment names",
  gather: gatherConfig({
    namespace: "callableFunctions",
    helpers: {},
    initialState: (): State => ({ procs: [], leftOut: [], shared: new Set(), resources: new Set() }),
    hooks: {
      pgIntrospection_introspection({ state, resolvedPreset }, { introspection, serviceName }) {
        const { schemas = ["public"] } = resolvedPreset.pgServices!.find(({ name }) => name === serviceName)!;
        const { callable, leftOut } = chooseFunctions(introspection, schemas);
        const byName = Map.groupBy(callable, nameOf);
        const shared = new Set([...byName].filter(([, procs]) => procs.length > 1).map(([name]) => name));
        Object.assign(state, { procs: introspection.procs, leftOut, shared });
        // In place: core holds this very array.
        introspection.procs.splice(0, introspection.procs.length, ...callable);
      },
      async pgIntrospection_proc({ state, helpers }, { entity: proc, serviceName }) {
        // Core takes none of several by one name.
        if (state.shared.has(nameOf(proc))) await helpers.pgProcedures.getResourceOptions(serviceName, proc);
      },
      pgProcedures_PgResourceOptions({ state }, { pgProc }) {
        state.resources.add(pgProc);
      },
    },
    async main(output, { state, helpers }) {
      await helpers.pgRegistry.getRegistry();
      const others = state.procs.filter((proc) => !state.resources.has(proc));
      output.leftOutFunctions = [...state.leftOut, ...others.map(withoutResource)];
    },
  }),
};

function nameOf({ proname, pronamespace }: PgProc): string {
  return `${pronamespace}.${proname}`;
}

function withoutResource(proc: PgProc): LeftOut {
  const signature = signatureOf(proc);
  return {
    object: `function ${signature}`,
    reason: "GraphQL has no type for what it takes or returns",
    fix: `-- Take and return other types, or revoke execute on function ${signature}.`,
    isFault: false,
  };
}
