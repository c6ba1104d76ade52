import type {} from "postgraphile";
import { withPgClientFromPgService } from "postgraphile/@dataplan/pg";
import { PgIntrospectionPlugin } from "postgraphile/graphile-build-pg";
import {
  type Introspection,
  makeIntrospectionQuery,
  parseIntrospectionResults,
} from "postgraphile/graphile-build-pg/pg-introspection";

declare global {
  namespace GraphileConfig {
    interface Plugins {
      QuickIntrospectionPlugin: true;
    }
  }
  namespace GraphileBuild {
    interface GatherOptions {
      /** Lets others have a turn, when it is time. */
      yieldToLoop?: () => Promise<void>;
    }
  }
}

type PgServiceConfig = GraphileConfig.PgServiceConfiguration;
type IntrospectedService = { readonly pgService: PgServiceConfig; readonly introspection: Introspection };
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

/** Core looks for an entity among all of its kind each time, and has all tables gathered at once, side by side. */
export const QuickIntrospectionPlugin: GraphileConfig.Plugin = {
  ...PgIntrospectionPlugin,
  name: "QuickIntrospectionPlugin",
  description: `${description}, one after the other, in a time that does not grow with the square of their number`,
  provides: [name],
  gather: {
    ...coreGather,
    initialState: (...given) => ({ ...coreGather.initialState!(...given), introspected: null, lookups: new Map() }),
    helpers: {
      ...coreGather.helpers,
      getIntrospection({ state, ...info }: IntrospectionInfo) {
        state.introspected ??= introspectServices(info, (introspected) => {
          // From now on whoever asks does not wait for what it is asked by.
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

/** From the time on when other plugins have taken away what they do not want. */
function introspectionIndexOf(info: IntrospectionInfo, service: string): Promise<IntrospectionIndex> {
  const { lookups } = info.state;
  const known = lookups.get(service) ?? info.helpers.pgIntrospection.getService(service).then(indexIntrospection);
  lookups.set(service, known);
  return known;
}

function indexIntrospection({ introspection }: { readonly introspection: Introspection }) {
  const { classes, types } = introspection;
  const arrays = types.filter(({ typarray }) => typarray !== null);
  return {
    classes: new Map(classes.map((entity) => [entity._id, entity])),
    // A dot may be part of a name.
    classesByName: Map.groupBy(classes, (entity) => `${entity.getNamespace()?.nspname}.${entity.relname}`),
    types: new Map(types.map((entity) => [entity._id, entity])),
    // Of several the first counts, as in core.
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
    const text = await queryIntrospection(pgService);
    await yieldToLoop();
    introspected.push({ pgService, introspection: parseIntrospectionResults(text) });
    await yieldToLoop();
  }
  onIntrospected(introspected);
  for (const { pgService, introspection } of introspected) {
    const serviceName = pgService.name;
    await info.process("pgIntrospection_introspection", { introspection, serviceName });
    for (const entity of introspection.classes) {
      await info.process("pgIntrospection_class", { entity, serviceName });
      // It has been begun, and its fault is told where its resource is wanted.
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

async function queryIntrospection(pgService: PgServiceConfig): Promise<string> {
  const settings = pgService.pgSettingsForIntrospection ?? null;
  const { rows } = await withPgClientFromPgService(pgService, settings, (client) =>
    client.query<{ introspection: string }>({ text: makeIntrospectionQuery() }),
  );
  return rows[0]!.introspection;
}
