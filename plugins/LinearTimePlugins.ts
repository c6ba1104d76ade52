import { PgIntrospectionPlugin, PgPolymorphismPlugin, PgTablesPlugin } from "graphile-build-pg";
import {
  type Introspection,
  makeIntrospectionQuery,
  parseIntrospectionResults,
} from "graphile-build-pg/pg-introspection";
import { ALL_EVENTS } from "#catalog";
import { memoizePerObject } from "#runtime";
import { queryWhileGathering } from "./gather-query.ts";
import { type Codec, resourcesOf } from "./table.ts";

declare global {
  namespace GraphileBuild {
    interface GatherOptions {
      /** Yields to the event loop when a time slice is over. */
      yieldToLoop?: () => Promise<void>;
      /** The bits of `pg_relation_is_updatable` for a view or foreign table. Absent: Postgres is asked. */
      viewEvents?: (schema: string, relation: string) => number;
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
export const IndexedIntrospectionPlugin: GraphileConfig.Plugin = {
  ...PgIntrospectionPlugin,
  name: "IndexedIntrospectionPlugin",
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

type ViewEvents = NonNullable<GraphileBuild.GatherOptions["viewEvents"]>;

/** The columns that are read from `pg_attribute`, whose rows are most of the response. */
const READ_OF_COLUMNS =
  "attrelid, attname, atttypid, attnum, attndims, atttypmod, attnotnull, atthasdef, attidentity, attgenerated, attisdropped, attacl";

/** Core's query without unused parts: columns of indexes and sequences, and dependencies on other objects than extensions. */
const INTROSPECTION = makeIntrospectionQuery()
  .replace(
    /select \*(\s+from pg_catalog\.pg_attribute\s+where attrelid in \(select classes\._id from classes)(?=\))/,
    (_, source) => `select ${READ_OF_COLUMNS}${source} where relkind operator(pg_catalog.=) any ('{r,v,m,f,p,c}')`,
  )
  .replace("deptype IN ('a', 'e')", "deptype operator(pg_catalog.=) 'e'");

/**
 * Core asks Postgres if each relation is updatable, which waits for any migration that has locked one of them. All tables are
 * updatable, and the catalogue knows it for views.
 */
const INTROSPECTION_OF_TABLES = INTROSPECTION.replace(
  /pg_catalog\.pg_relation_is_updatable\(oid, true\)::bit\(8\)::int4/,
  `case when relkind in ('r', 'p') then ${ALL_EVENTS} end`,
);

function completeUpdatability({ classes }: Introspection, viewEvents: ViewEvents): void {
  for (const entity of classes) {
    entity.updatable_mask ??= viewEvents(entity.getNamespace()?.nspname ?? "", entity.relname);
  }
}

async function introspectServices(
  info: Omit<IntrospectionInfo, "state">,
  onIntrospected: (introspected: readonly IntrospectedService[]) => void,
): Promise<readonly IntrospectedService[]> {
  const { yieldToLoop = async () => {}, viewEvents } = info.options;
  const introspectionQuery = viewEvents ? INTROSPECTION_OF_TABLES : INTROSPECTION;
  const introspected: IntrospectedService[] = [];
  for (const pgService of info.resolvedPreset.pgServices ?? []) {
    const [row] = await queryWhileGathering<{ introspection: string }>(pgService, introspectionQuery);
    await yieldToLoop();
    const introspection = parseIntrospectionResults(row!.introspection);
    if (viewEvents) completeUpdatability(introspection, viewEvents);
    introspected.push({ pgService, introspection });
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

export const IndexedLookupsPlugin: GraphileConfig.Plugin = {
  name: "IndexedLookupsPlugin",
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

/** Core scans all resources for the table of each row type. So the hook gets one row type at a time, with its resources only. */
export const IndexedTablesPlugin: GraphileConfig.Plugin = {
  ...PgTablesPlugin,
  name: "IndexedTablesPlugin",
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

/** Core scans all row types for polymorphic ones, once per type. Most databases have no polymorphic types. */
export const IndexedPolymorphismPlugin: GraphileConfig.Plugin = {
  ...PgPolymorphismPlugin,
  name: "IndexedPolymorphismPlugin",
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

type BehaviorText = { readonly behaviorString: string };

/** The methods of core's behaviors that are memoized here. All except the first are private. */
type CoreBehavior = {
  entityMatches(type: string, entity: unknown, filter: string): boolean | undefined;
  getBehaviorForEntity(type: string, entity: unknown): BehaviorText;
  getPreferencesAppliedBehaviors(type: string, inferred: BehaviorText, override: BehaviorText): BehaviorText;
  resolveBehavior(type: string, ...details: unknown[]): BehaviorText;
  validateBehavior(type: string | null, source: string, text: string): void;
};

export const MemoizedBehaviorsPlugin: GraphileConfig.Plugin = {
  name: "MemoizedBehaviorsPlugin",
  description:
    "Memoizes behavior strings, of which a schema has few, so that each is parsed and compared once and not per column",
  schema: {
    hooks: {
      build(build) {
        let behavior: CoreBehavior;
        // Core freezes its behaviors right after this assignment.
        Object.defineProperty(build, "behavior", {
          enumerable: true,
          get: () => behavior,
          set(made: CoreBehavior) {
            behavior = Object.assign(made, memoizeBehavior(made));
          },
        });
        return build;
      },
    },
  },
};

function memoizeBehavior(behavior: CoreBehavior): Omit<CoreBehavior, "getBehaviorForEntity"> {
  const entityMatches = behavior.entityMatches.bind(behavior);
  const applyPreferences = behavior.getPreferencesAppliedBehaviors.bind(behavior);
  const resolveBehavior = behavior.resolveBehavior.bind(behavior);
  const validateBehavior = behavior.validateBehavior.bind(behavior);
  const matches = new Map<string, Map<string, boolean | undefined>>();
  const applied = new Map<string, BehaviorText>();
  const resolved = new Map<string, BehaviorText>();
  const valid = new Set<string>();
  return {
    entityMatches(type, entity, filter) {
      const matchKey = `${type} ${filter}`;
      const results = matches.get(matchKey) ?? new Map<string, boolean | undefined>();
      matches.set(matchKey, results);
      const { behaviorString } = behavior.getBehaviorForEntity(type, entity);
      if (!results.has(behaviorString)) results.set(behaviorString, entityMatches(type, entity, filter));
      return results.get(behaviorString);
    },
    getPreferencesAppliedBehaviors(type, inferred, override) {
      const key = `${type}\n${inferred.behaviorString}\n${override.behaviorString}`;
      const result = applied.get(key) ?? applyPreferences(type, inferred, override);
      applied.set(key, result);
      return result;
    },
    // Core keeps one per column, each with the list of where its parts come from.
    resolveBehavior(type, ...details) {
      const result = resolveBehavior(type, ...details);
      const equal = resolved.get(result.behaviorString) ?? result;
      resolved.set(equal.behaviorString, equal);
      return equal;
    },
    validateBehavior(type, source, text) {
      const key = `${type}\n${text}`;
      if (valid.has(key)) return;
      validateBehavior(type, source, text);
      valid.add(key);
    },
  };
}
