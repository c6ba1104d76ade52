import { PgPolymorphismPlugin, PgTablesPlugin } from "graphile-build-pg";
import { memoizePerObject } from "../engine/cache/memoize.ts";
import { type Codec, resourcesOf } from "./table.ts";

declare global {
  namespace GraphileConfig {
    interface Plugins {
      QuickLookupsPlugin: true;
      QuickTablesPlugin: true;
      QuickPolymorphismPlugin: true;
    }
  }
}

export const QuickLookupsPlugin: GraphileConfig.Plugin = {
  name: "QuickLookupsPlugin",
  description: "Indexes the lookups for which core scans all tables or all columns",
  after: ["PgBasicsPlugin"],
  schema: {
    hooks: {
      build(unfinished) {
        const build = unfinished as GraphileBuild.Build;
        const { pgTableResource } = build;
        build.pgTableResource = (codec, isStrict = true) => {
          const found = resourcesOf(build.input.pgRegistry, codec).filter(
            ({ parameters, executor, isVirtual, isUnique }) =>
              !parameters && executor === codec.executor && !(isStrict && (isVirtual || isUnique)),
          );
          if (found.length > 1) return pgTableResource(codec, isStrict);
          return (found[0] as ReturnType<typeof pgTableResource<typeof codec>>) ?? null;
        };
        return build;
      },
      init: {
        before: ["PgCodecs"],
        callback(_, { behavior }) {
          // biome-ignore lint/complexity/useLiteralKeys: private, and the only access to the caches.
          for (const memory of Object.values<BehaviorCaches>(behavior["behaviorEntities"])) {
            // Core scans the list for an equal pair; the caches below are keyed by the pair's elements instead.
            memory.listCache.get = () => undefined;
            for (const cache of [memory.fullCache, memory.inferredCache, memory.overrideCache]) indexPairs(cache);
          }
          return _;
        },
      },
    },
  },
};

const { name: tablesPluginName, description: tablesDescription, schema: tablesSchema } = PgTablesPlugin;
const registerTableTypes = tablesSchema!.hooks!.init as GraphileBuild.Hook<object, GraphileBuild.ContextInit>;

/** For each row type, core scans all resources for its table. So the hook gets one row type at a time, with its resources only. */
export const QuickTablesPlugin: GraphileConfig.Plugin = {
  ...PgTablesPlugin,
  name: "QuickTablesPlugin",
  description: `${tablesDescription}, in linear time`,
  provides: [tablesPluginName],
  schema: {
    ...tablesSchema,
    hooks: {
      ...tablesSchema!.hooks,
      init(_, build, context) {
        const { pgCodecMetaLookup } = build as typeof build & { readonly pgCodecMetaLookup: Map<Codec, unknown> };
        for (const [codec, meta] of pgCodecMetaLookup) {
          const own = resourcesOf(build.input.pgRegistry, codec).map((resource) => [resource.name, resource]);
          const narrowed = { pgCodecMetaLookup: new Map([[codec, meta]]), pgResources: Object.fromEntries(own) };
          registerTableTypes(_, { ...build, ...narrowed } as typeof build, context);
        }
        return _;
      },
    },
  },
};

const {
  name: polymorphismPluginName,
  description: polymorphismDescription,
  schema: polymorphismSchema,
} = PgPolymorphismPlugin;
const addPolymorphicInterfaces = polymorphismSchema!.hooks!.GraphQLObjectType_interfaces as InterfacesHook;

/** For each type, core scans all row types for polymorphic ones, of which most databases have none. */
export const QuickPolymorphismPlugin: GraphileConfig.Plugin = {
  ...PgPolymorphismPlugin,
  name: "QuickPolymorphismPlugin",
  description: `${polymorphismDescription ?? polymorphismPluginName}, in linear time`,
  provides: [polymorphismPluginName],
  schema: {
    ...polymorphismSchema,
    hooks: {
      ...polymorphismSchema!.hooks,
      GraphQLObjectType_interfaces(interfaces, build, context) {
        const isNamed = context.scope.pgCodec?.extensions?.tags?.implements !== undefined;
        if (!isNamed && !hasPolymorphism(build.input.pgRegistry)) return interfaces;
        return addPolymorphicInterfaces(interfaces, build, context);
      },
    },
  },
};

const hasPolymorphism = memoizePerObject(({ pgCodecs }: PolymorphismRegistry) =>
  Object.values(pgCodecs).some(({ polymorphism }) => polymorphism !== undefined),
);

type BehaviorCache = Map<unknown, unknown>;

/** Core's behavior caches for one kind of entity: a table, or the pair of a table and a column name. */
type BehaviorCaches = {
  readonly listCache: BehaviorCache;
  readonly fullCache: BehaviorCache;
  readonly inferredCache: BehaviorCache;
  readonly overrideCache: BehaviorCache;
};

function indexPairs(cache: BehaviorCache): void {
  const pairs = new Map<unknown, BehaviorCache>();
  const isPair = (key: unknown): key is [unknown, unknown] => Array.isArray(key) && key.length === 2;
  const getOther = cache.get.bind(cache);
  const setOther = cache.set.bind(cache);
  cache.get = (key) => (isPair(key) ? pairs.get(key[0])?.get(key[1]) : getOther(key));
  cache.set = (key, value) => {
    if (!isPair(key)) return setOther(key, value);
    const [first, second] = key;
    pairs.set(first, (pairs.get(first) ?? new Map()).set(second, value));
    return cache;
  };
}

type SchemaHooks = NonNullable<NonNullable<GraphileConfig.Plugin["schema"]>["hooks"]>;
type InterfacesHook = Extract<SchemaHooks["GraphQLObjectType_interfaces"], (...given: never[]) => unknown>;
type PolymorphismRegistry = GraphileBuild.BuildInput["pgRegistry"];
