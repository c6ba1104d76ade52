import { PgIntrospectionPlugin } from "graphile-build-pg";
import {
  type Introspection,
  makeIntrospectionQuery,
  parseIntrospectionResults,
} from "graphile-build-pg/pg-introspection";
import { queryWhileGathering } from "./gather-query.ts";

declare global {
  namespace GraphileConfig {
    interface Plugins {
      QuickIntrospectionPlugin: true;
    }
  }
  namespace GraphileBuild {
    interface GatherOptions {
      /** Yields to the event loop when a time slice is over. */
      yieldToLoop?: () => Promise<void>;
    }
  }
}

type IntrospectedService = {
  readonly pgService: GraphileConfig.PgServiceConfiguration;
  readonly introspection: Introspection;
};
type IntrospectionState = {
  introspected: readonly IntrospectedService[] | Promise<readonly IntrospectedService[]> | null;
  readonly indexes: Map<string, Promise<IntrospectionIndex>>;
};
type IntrospectionIndex = ReturnType<typeof indexIntrospection>;
type IntrospectionInfo = Parameters<NonNullable<NonNullable<typeof PgIntrospectionPlugin.gather>["main"]>>[1] & {
  readonly state: IntrospectionState;
};

const { name, description } = PgIntrospectionPlugin;
const coreGather = PgIntrospectionPlugin.gather!;

/** Core scans all entities of a kind for each lookup, and gathers all tables concurrently. */
export const QuickIntrospectionPlugin: GraphileConfig.Plugin = {
  ...PgIntrospectionPlugin,
  name: "QuickIntrospectionPlugin",
  description: `${description}, one after the other, in linear time`,
  provides: [name],
  gather: {
    ...coreGather,
    initialState: (...given) => ({ ...coreGather.initialState!(...given), introspected: null, indexes: new Map() }),
    helpers: {
      ...coreGather.helpers,
      getIntrospection({ state, ...info }: IntrospectionInfo) {
        state.introspected ??= introspectServices(info, (introspected) => {
          // Hooks called below may ask again and must not wait for this promise.
          state.introspected = introspected;
        });
        return state.introspected;
      },
      getClass: async (info: IntrospectionInfo, service: string, id: string) =>
        (await introspectionIndexOf(info, service)).classes.get(id),
      getClassByName: async (info: IntrospectionInfo, service: string, schema: string, table: string) =>
        (await introspectionIndexOf(info, service)).classesByName
          .get(`${schema}.${table}`)
          ?.find(({ relname }) => relname === table),
      getType: async (info: IntrospectionInfo, service: string, id: string) =>
        (await introspectionIndexOf(info, service)).types.get(id),
      getTypeByArray: async (info: IntrospectionInfo, service: string, id: string) =>
        (await introspectionIndexOf(info, service)).typesByArray.get(id),
    },
  } as typeof coreGather,
};

/** Built after the plugins that remove entities have run. */
function introspectionIndexOf(info: IntrospectionInfo, service: string): Promise<IntrospectionIndex> {
  const { indexes } = info.state;
  const index = indexes.get(service) ?? info.helpers.pgIntrospection.getService(service).then(indexIntrospection);
  indexes.set(service, index);
  return index;
}

function indexIntrospection({ introspection }: { readonly introspection: Introspection }) {
  const { classes, types } = introspection;
  const arrays = types.filter(({ typarray }) => typarray !== null);
  return {
    classes: new Map(classes.map((entity) => [entity._id, entity])),
    // A name may contain a dot, so several may share a key.
    classesByName: Map.groupBy(classes, (entity) => `${entity.getNamespace()?.nspname}.${entity.relname}`),
    types: new Map(types.map((entity) => [entity._id, entity])),
    // The first of several wins, as in core.
    typesByArray: new Map(arrays.toReversed().map((entity) => [entity.typarray!, entity])),
  };
}

async function introspectServices(
  info: Omit<IntrospectionInfo, "state">,
  onIntrospected: (introspected: readonly IntrospectedService[]) => void,
): Promise<readonly IntrospectedService[]> {
  const { yieldToLoop = async () => {} } = info.options;
  const introspected: IntrospectedService[] = [];
  for (const pgService of info.resolvedPreset.pgServices ?? []) {
    const [row] = await queryWhileGathering<{ introspection: string }>(pgService, makeIntrospectionQuery());
    await yieldToLoop();
    introspected.push({ pgService, introspection: parseIntrospectionResults(row!.introspection) });
    await yieldToLoop();
  }
  onIntrospected(introspected);
  for (const { pgService, introspection } of introspected) {
    const serviceName = pgService.name;
    await info.process("pgIntrospection_introspection", { introspection, serviceName });
    for (const entity of introspection.classes) {
      await info.process("pgIntrospection_class", { entity, serviceName });
      // The error is reported where the resource is used.
      await info.helpers.pgTables.getResourceOptions(serviceName, entity).then(undefined, () => {});
      await yieldToLoop();
    }
    for (const entity of introspection.procs) {
      await info.process("pgIntrospection_proc", { entity, serviceName });
      await yieldToLoop();
    }
  }
  return introspected;
}
