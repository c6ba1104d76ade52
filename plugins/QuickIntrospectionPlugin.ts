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
      giveWay?: () => Promise<void>;
    }
  }
}

type Service = GraphileConfig.PgServiceConfiguration;
type Introspected = { readonly pgService: Service; readonly introspection: Introspection };
type State = {
  introspected: readonly Introspected[] | Promise<readonly Introspected[]> | null;
  readonly lookups: Map<string, Promise<Lookups>>;
};
type Lookups = ReturnType<typeof lookupsOf>;
type Info = Parameters<NonNullable<NonNullable<typeof PgIntrospectionPlugin.gather>["main"]>>[1] & {
  readonly state: State;
};

const { name, description } = PgIntrospectionPlugin;
const core = PgIntrospectionPlugin.gather!;

/** Core looks for an entity among all of its kind each time, and has all tables gathered at once, side by side. */
export const QuickIntrospectionPlugin: GraphileConfig.Plugin = {
  ...PgIntrospectionPlugin,
  name: "QuickIntrospectionPlugin",
  description: `${description}, one after the other, in a time that does not grow with the square of their number`,
  provides: [name],
  gather: {
    ...core,
    initialState: (...given) => ({ ...core.initialState!(...given), introspected: null, lookups: new Map() }),
    helpers: {
      ...core.helpers,
      getIntrospection({ state, ...info }: Info) {
        state.introspected ??= introspect(info, (introspected) => {
          // From now on whoever asks does not wait for what it is asked by.
          state.introspected = introspected;
        });
        return state.introspected;
      },
      getClass: async (info: Info, service: string, id: string) => (await lookups(info, service)).classes.get(id),
      getClassByName: async (info: Info, service: string, schema: string, table: string) =>
        (await lookups(info, service)).classesByName
          .get(`${schema}.${table}`)
          ?.find(({ relname }) => relname === table),
      getType: async (info: Info, service: string, id: string) => (await lookups(info, service)).types.get(id),
      getTypeByArray: async (info: Info, service: string, id: string) =>
        (await lookups(info, service)).typesByArray.get(id),
    },
  } as typeof core,
};

/** From the time on when other plugins have taken away what they do not want. */
function lookups(info: Info, service: string): Promise<Lookups> {
  const { lookups } = info.state;
  const known = lookups.get(service) ?? info.helpers.pgIntrospection.getService(service).then(lookupsOf);
  lookups.set(service, known);
  return known;
}

function lookupsOf({ introspection }: { readonly introspection: Introspection }) {
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

async function introspect(
  info: Omit<Info, "state">,
  isKnown: (introspected: readonly Introspected[]) => void,
): Promise<readonly Introspected[]> {
  const { giveWay = async () => {} } = info.options;
  const introspected: Introspected[] = [];
  for (const pgService of info.resolvedPreset.pgServices ?? []) {
    const text = await readCatalogue(pgService);
    await giveWay();
    introspected.push({ pgService, introspection: parseIntrospectionResults(text) });
    await giveWay();
  }
  isKnown(introspected);
  for (const { pgService, introspection } of introspected) {
    const serviceName = pgService.name;
    await info.process("pgIntrospection_introspection", { introspection, serviceName });
    for (const entity of introspection.classes) {
      await info.process("pgIntrospection_class", { entity, serviceName });
      // It has been begun, and its fault is told where its resource is wanted.
      await info.helpers.pgTables.getResourceOptions(serviceName, entity).then(undefined, () => {});
      await giveWay();
    }
    for (const entity of introspection.procs) {
      await info.process("pgIntrospection_proc", { entity, serviceName });
      await giveWay();
    }
  }
  return introspected;
}

async function readCatalogue(pgService: Service): Promise<string> {
  const settings = pgService.pgSettingsForIntrospection ?? null;
  const { rows } = await withPgClientFromPgService(pgService, settings, (client) =>
    client.query<{ introspection: string }>({ text: makeIntrospectionQuery() }),
  );
  return rows[0]!.introspection;
}
