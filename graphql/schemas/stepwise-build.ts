import { setImmediate } from "node:timers/promises";
import {
  type GraphQLError,
  type GraphQLNamedType,
  type GraphQLObjectType,
  type GraphQLSchema,
  validateSchema,
} from "grafast/graphql";
import { buildInflection, gather, getBuilder, type SchemaBuilder } from "graphile-build";
import type { Introspection } from "graphile-build-pg/pg-introspection";
import {
  collectTypesInOrder,
  findFunctionsWithoutField,
  type GraphqlTableNames,
  listGraphqlTableNames,
  mutationsOfTable,
  type OmittedObject,
  outputTypeOf,
  tablesOf,
} from "#plugins";
import type { Stepwise } from "#runtime/concurrency";
import { UnfinishedSchema } from "../documents/unfinished-schema.ts";
import { DeferredFields } from "./deferred-fields.ts";
import { makeSchema } from "./stepwise-schema.ts";

/** Pure inflectors, which depend on no option of a preset. Builds call them with the same few words over and over. */
const PURE_INFLECTORS = ["camelCase", "upperCamelCase", "coerceToGraphQLName", "pluralize", "singularize"] as const;
const MAX_INFLECTED_WORDS = 100_000;

/** The words of all builds: a change of the database leaves most names as they are. */
const inflectedWords = Object.fromEntries(PURE_INFLECTORS.map((name) => [name, new Map<string, string>()])) as Record<
  (typeof PURE_INFLECTORS)[number],
  Map<string, string>
>;

type YieldToLoop = () => Promise<void>;

export type BuiltSchema = {
  readonly schema: GraphQLSchema;
  /** Objects that callers may use and the schema omits. */
  readonly omitted: readonly OmittedObject[];
  /** Computed on demand. */
  readonly tableNames: () => readonly GraphqlTableNames[];
};

/** Called with the schema before its types are made: each type is made when it is looked up. Called with null if the build fails. */
export type OnUnfinished = (unfinished: GraphQLSchema | null) => void;

/** The time that a build runs before it yields to requests. */
const STEP_MS = 10;
const TYPES_VALIDATED_AT_ONCE = 100;
const ROOT_TYPES = ["Query", "Mutation", "Subscription"] as const;

/** PostGraphile's makeSchema in steps: its own holds the event loop until it is done, for many seconds with thousands of tables. */
export async function buildSchemaInSteps(
  preset: GraphileConfig.Preset,
  signal: AbortSignal,
  onUnfinished: OnUnfinished = () => {},
): Promise<BuiltSchema> {
  const yieldToLoop = makeYieldToLoop(signal);
  const withoutFields = new Set<string>();
  for (;;) {
    const built = await attemptStepwiseBuild(preset, withoutFields, yieldToLoop, onUnfinished);
    if (built) return built;
    onUnfinished(null);
  }
}

/** Returns null when a type turned out to have no fields; `withoutFields` then has it. */
async function attemptStepwiseBuild(
  basePreset: GraphileConfig.Preset,
  withoutFields: Set<string>,
  yieldToLoop: YieldToLoop,
  onUnfinished: OnUnfinished,
): Promise<BuiltSchema | null> {
  const introspections: Introspection[] = [];
  const preset = {
    extends: [basePreset],
    plugins: [makeStepwisePlugin(yieldToLoop, introspections)],
    gather: { yieldToLoop },
  };
  const { resolvedPreset } = getBuilder(preset);
  const inflection = memoizeInflection(buildInflection(resolvedPreset));
  const input = await gather(resolvedPreset, { inflection });
  await yieldToLoop();
  const builder = getBuilder(resolvedPreset, inflection);
  const deferred = new DeferredFields(builder, withoutFields);
  const build = builder.createBuild(input);
  await initializeInSteps(builder, build, yieldToLoop);
  await runSteps(makeRowTypes(build), yieldToLoop);
  const roots = ROOT_TYPES.map((root) => build.getTypeByName(build.inflection.builtin(root)) as GraphQLObjectType);
  const [query, mutation] = roots;
  onUnfinished(new UnfinishedSchema(build, { query, mutation }));
  await yieldToLoop();
  const types = await runSteps(makeTypes(roots, deferred), yieldToLoop);
  if (!types) return null;
  const schema = await runSteps(finishSchema(builder, build, types), yieldToLoop);
  await validateInSteps(schema, yieldToLoop);
  for (const introspection of introspections) await clearIntrospection(introspection, yieldToLoop);
  const omitted = [...(input.omittedObjects ?? []), ...findFunctionsWithoutField(build, schema)];
  return { schema, omitted, tableNames: () => listGraphqlTableNames(build, schema) };
}

/** Yields to the event loop when a time slice is over. */
function makeYieldToLoop(signal: AbortSignal): YieldToLoop {
  let startedAt = performance.now();
  return async () => {
    signal.throwIfAborted();
    if (performance.now() - startedAt < STEP_MS) return;
    await setImmediate();
    startedAt = performance.now();
  };
}

async function runSteps<T>(steps: Stepwise<T>, yieldToLoop: YieldToLoop): Promise<T> {
  for (;;) {
    const step = steps.next();
    if (step.done) return step.value;
    await yieldToLoop();
  }
}

/** Yields where tables are processed one after the other: yielding within concurrent work would change the order of the schema. */
function makeStepwisePlugin(yieldToLoop: YieldToLoop, introspections: Introspection[]): GraphileConfig.Plugin {
  return {
    name: "InTurnsPlugin",
    schema: { hooks: { GraphQLSchema: (config) => ({ ...config, assumeValid: true }) } },
    gather: {
      hooks: {
        pgIntrospection_introspection: (_info, { introspection }) => void introspections.push(introspection),
        pgRegistry_PgRegistryBuilder_finalize(_info, { registryBuilder }) {
          const { pgCodecs, pgResources } = registryBuilder.getRegistryConfig();
          for (const codec of Object.values(pgCodecs)) forgetRegistry(codec);
          for (const { parameters = [] } of Object.values(pgResources))
            for (const { codec } of parameters) forgetRegistry(codec);
        },
        pgTables_PgResourceOptions_relations: yieldToLoop,
        pgTables_PgResourceOptions_relations_post: yieldToLoop,
      },
    },
  };
}

/** Core has each codec remember the first registry that it is in, for exports, unless it has this: builds share codecs. */
function forgetRegistry(codec: object): void {
  if (!("$exporter$factory" in codec)) Object.defineProperty(codec, "$exporter$factory", { value: () => codec });
}

/** Core keeps the introspection with each codec and no longer uses it: half of a schema's memory. */
async function clearIntrospection(introspection: Introspection, yieldToLoop: YieldToLoop): Promise<void> {
  for (const entities of Object.values(introspection).filter(Array.isArray)) {
    for (const entity of entities) {
      for (const key of Object.keys(entity)) entity[key] = undefined;
      await yieldToLoop();
    }
    entities.length = 0;
  }
  for (const key of Object.keys(introspection)) Reflect.set(introspection, key, undefined);
}

/** Runs the init hooks in steps, and keeps buildSchema from running them again. */
async function initializeInSteps(
  builder: SchemaBuilder,
  build: GraphileBuild.Build,
  yieldToLoop: YieldToLoop,
): Promise<void> {
  const hooks = builder.hooks.init.splice(0);
  for (const hook of hooks) {
    await yieldToLoop();
    if (hook.displayName?.startsWith("TableMutationsPlugin/")) await findMutationsInSteps(build, yieldToLoop);
    builder.hooks.init = [hook];
    builder.applyHooks("init", {}, build, { scope: {}, type: "init" });
  }
  builder.hooks.init = [];
  builder.initBuild(build);
}

/** Precomputes the mutations per table: checking the behavior of each column is the costly part of this hook. */
async function findMutationsInSteps(build: GraphileBuild.Build, yieldToLoop: YieldToLoop): Promise<void> {
  for (const table of tablesOf(build)) {
    await yieldToLoop();
    mutationsOfTable(table, build);
  }
}

/** Makes the row types, to which most others refer. Yields between them. */
function* makeRowTypes(build: GraphileBuild.Build): Stepwise<void> {
  for (const table of tablesOf(build)) {
    if (build.behavior.pgResourceMatches(table, "resource:select")) outputTypeOf(build, table.codec);
    yield;
  }
}

/** Makes all fields and types. Returns null when a deferred type turned out to have no fields. Yields between the types. */
function* makeTypes(
  roots: readonly (GraphQLObjectType | null | undefined)[],
  deferred: DeferredFields,
): Stepwise<GraphQLNamedType[] | null> {
  if (!(yield* deferred.settleRoots())) return null;
  // Evaluates the fields of all other types in steps.
  const types = yield* collectTypesInOrder(roots.filter((type) => type != null));
  return (yield* deferred.settle()) ? types : null;
}

/** Does what `buildSchema` of core does with these types, which it would collect in one go. */
function* finishSchema(
  builder: SchemaBuilder,
  build: GraphileBuild.Build,
  collected: GraphQLNamedType[],
): Stepwise<GraphQLSchema> {
  const context = { type: "GraphQLSchema", scope: {} } as const;
  const spec = { directives: [...build.graphql.specifiedDirectives] };
  const config = builder.applyHooks("GraphQLSchema", spec, build, context);
  const typesHooks = builder.hooks.GraphQLSchema_types;
  builder.hooks.GraphQLSchema_types = typesHooks.filter(
    ({ displayName }) => !displayName?.startsWith("TypesInOrderPlugin/"),
  );
  const types = builder.applyHooks("GraphQLSchema_types", collected, build, { ...context, config });
  const schema = yield* makeSchema({ ...config, types });
  return builder.applyHooks("finalize", schema, build, { scope: {}, type: "finalize" });
}

/** validateSchema in steps; `assumeValid` keeps core from calling it. */
async function validateInSteps(schema: GraphQLSchema, yieldToLoop: YieldToLoop): Promise<void> {
  const types = Object.entries(schema.getTypeMap());
  const errors: GraphQLError[] = [];
  for (let start = 0; start < types.length; start += TYPES_VALIDATED_AT_ONCE) {
    await yieldToLoop();
    const some = Object.fromEntries(types.slice(start, start + TYPES_VALIDATED_AT_ONCE));
    const part: GraphQLSchema = Object.create(schema, {
      getTypeMap: { value: () => some },
      __validationErrors: { value: undefined, writable: true },
    });
    errors.push(...validateSchema(part));
  }
  if (errors.length > 0) throw new AggregateError(errors, `The schema is not valid: ${errors[0]!.message}`);
}

/** Memoizes the pure inflectors, in place. */
function memoizeInflection(inflection: GraphileBuild.Inflection): GraphileBuild.Inflection {
  for (const name of PURE_INFLECTORS) {
    const inflect = inflection[name] as (text: string) => string;
    const cache = inflectedWords[name];
    inflection[name] = (text: string) => {
      const cached = cache.get(text);
      if (cached !== undefined) return cached;
      const inflected = inflect(text);
      if (cache.size >= MAX_INFLECTED_WORDS) cache.clear();
      cache.set(text, inflected);
      return inflected;
    };
  }
  return inflection;
}
