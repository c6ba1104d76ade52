import type {} from "postgraphile";
import type { PgProc } from "postgraphile/graphile-build-pg/pg-introspection";

declare global {
  namespace GraphileConfig {
    interface Plugins {
      CallableFunctionsPlugin: true;
    }
  }
}

/** Pseudo-types that a function may return and GraphQL can show. */
const SHOWN: ReadonlySet<string> = new Set(["void", "record"]);

export const CallableFunctionsPlugin: GraphileConfig.Plugin = {
  name: "CallableFunctionsPlugin",
  description: "Procedures, aggregates and functions of anyelement and the like are passed over",
  gather: {
    hooks: {
      pgIntrospection_introspection(_info, { introspection: { procs } }) {
        // In place: core holds this very array.
        procs.splice(0, procs.length, ...procs.filter(isCallable));
      },
    },
  },
};

function isCallable(proc: PgProc): boolean {
  if (proc.prokind !== "f") return false;
  const types = [proc.getReturnType(), ...proc.getArguments().map(({ type }) => type)];
  return types.every((type) => type?.typtype !== "p" || SHOWN.has(type.typname));
}
