import { setImmediate } from "node:timers/promises";
import { buildInflection, gather, getBuilder, type SchemaBuilder } from "postgraphile/graphile-build";
import type { Introspection } from "postgraphile/graphile-build-pg/pg-introspection";
import { type GraphQLError, type GraphQLSchema, validateSchema } from "postgraphile/graphql";
import type { Stepwise } from "../../engine/stepwise.ts";
import { fieldlessFunctions } from "../fieldless-functions.ts";
import type { LeftOut } from "../left-out.ts";
import { rememberNames } from "../remember-names.ts";
import { isTable, outputTypeOf, type Table } from "../table.ts";
import { mutationsOfTable } from "../table-mutations.ts";
import { type TableNames, tableNames } from "../table-names.ts";
import { typesInOrder } from "../types-in-order.ts";
import { PostponedFields } from "./postponed-fields.ts";

type Build = GraphileBuild.Build;
type GiveWay = () => Promise<void>;

export type MadeSchema = {
  readonly schema: GraphQLSchema;
  readonly resolvedPreset: GraphileConfig.ResolvedPreset;
};

export type BuiltSchema = MadeSchema & {
  /** What callers may use and the schema does not have. */
  readonly leftOut: readonly LeftOut[];
  /** Worked out when it is asked for. */
  readonly names: () => readonly TableNames[];
};

/** How long requests wait for their turn, wherever a step can be left for a while. */
const TURN_MS = 10;
const TYPES_VALIDATED_AT_ONCE = 100;
const ROOTS = ["Query", "Mutation", "Subscription"] as const;

/** As PostGraphile's makeSchema does, which leaves nobody else a turn until it is done: with thousands of tables, for many seconds. */
export async function makeSchemaInTurns(given: GraphileConfig.Preset, signal: AbortSignal): Promise<BuiltSchema> {
  const giveWay = makeGiveWay(signal);
  const withoutFields = new Set<string>();
  for (;;) {
    const built = await attempt(given, withoutFields, giveWay);
    if (built) return built;
  }
}

/** Null when a type has no fields that seemed to have some. */
async function attempt(
  given: GraphileConfig.Preset,
  withoutFields: Set<string>,
  giveWay: GiveWay,
): Promise<BuiltSchema | null> {
  const introspections: Introspection[] = [];
  const preset = { extends: [given], plugins: [inTurns(giveWay, introspections)], gather: { giveWay } };
  const { resolvedPreset } = getBuilder(preset);
  const inflection = rememberNames(buildInflection(resolvedPreset));
  const input = await gather(resolvedPreset, { inflection });
  await giveWay();
  const builder = getBuilder(resolvedPreset, inflection);
  const postponed = new PostponedFields(builder, withoutFields);
  const build = builder.createBuild(input);
  await initializeInTurns(builder, build, giveWay);
  if (!(await takeSteps(makeTypes(build, postponed), giveWay))) return null;
  builder.createBuild = () => build;
  const schema = builder.buildSchema(input);
  await validateInTurns(schema, giveWay);
  for (const introspection of introspections) await forget(introspection, giveWay);
  const leftOut = [...(input.leftOutFunctions ?? []), ...fieldlessFunctions(build, schema)];
  return { schema, resolvedPreset, leftOut, names: () => tableNames(build, schema) };
}

/** Lets others have a turn, when it is time. */
function makeGiveWay(signal: AbortSignal): GiveWay {
  let startedAt = performance.now();
  return async () => {
    signal.throwIfAborted();
    if (performance.now() - startedAt < TURN_MS) return;
    await setImmediate();
    startedAt = performance.now();
  };
}

async function takeSteps<T>(steps: Stepwise<T>, giveWay: GiveWay): Promise<T> {
  for (;;) {
    const step = steps.next();
    if (step.done) return step.value;
    await giveWay();
  }
}

/** Where one table comes after the other: to give way among what is done side by side would change the order of the schema. */
function inTurns(giveWay: GiveWay, introspections: Introspection[]): GraphileConfig.Plugin {
  return {
    name: "InTurnsPlugin",
    schema: { hooks: { GraphQLSchema: (config) => ({ ...config, assumeValid: true }) } },
    gather: {
      hooks: {
        pgIntrospection_introspection: (_info, { introspection }) => void introspections.push(introspection),
        pgTables_PgResourceOptions_relations: giveWay,
        pgTables_PgResourceOptions_relations_post: giveWay,
      },
    },
  };
}

/** Core keeps what it has read of the catalogue with each codec, where nobody looks any more: that is half of what a schema takes in memory. */
async function forget(introspection: Introspection, giveWay: GiveWay): Promise<void> {
  for (const entities of Object.values(introspection).filter(Array.isArray)) {
    for (const entity of entities) {
      for (const key of Object.keys(entity)) entity[key] = undefined;
      await giveWay();
    }
    entities.length = 0;
  }
  for (const key of Object.keys(introspection)) Reflect.set(introspection, key, undefined);
}

/** What is done at the beginning of buildSchema, which does it no more. */
async function initializeInTurns(builder: SchemaBuilder, build: Build, giveWay: GiveWay): Promise<void> {
  const hooks = builder.hooks.init.splice(0);
  for (const hook of hooks) {
    await giveWay();
    if (hook.displayName?.startsWith("TableMutationsPlugin/")) await findMutationsInTurns(build, giveWay);
    builder.hooks.init = [hook];
    builder.applyHooks("init", {}, build, { scope: {}, type: "init" });
  }
  builder.hooks.init = [];
  builder.initBuild(build);
}

/** They ask whether each column may be written, which takes longer than all that is made of the answers. */
async function findMutationsInTurns(build: Build, giveWay: GiveWay): Promise<void> {
  for (const table of tablesOf(build)) {
    await giveWay();
    mutationsOfTable(table, build);
  }
}

/** Returns whether each type has the fields that it seemed to have. Yields between the types. */
function* makeTypes(build: Build, postponed: PostponedFields): Stepwise<boolean> {
  for (const table of tablesOf(build)) {
    if (!build.behavior.pgResourceMatches(table, "resource:select")) continue;
    const isShown = outputTypeOf(build, table.codec) !== null;
    if (!(yield* postponed.settle())) return false;
    for (const name of isShown ? typesBeside(table, build) : []) {
      build.getTypeByName(name);
      if (!(yield* postponed.settle())) return false;
    }
  }
  for (const root of ROOTS) {
    build.getTypeByName(build.inflection.builtin(root));
    if (!(yield* postponed.settle())) return false;
  }
  // Each of them is asked for what it refers to, which the schema's constructor does again.
  const roots = ROOTS.map((root) => build.getTypeByName(build.inflection.builtin(root)));
  yield* typesInOrder(roots.filter((type) => type != null));
  return true;
}

/** Names of types that the fields of the root types refer to. */
function typesBeside(table: Table, build: Build): string[] {
  const { behavior, inflection } = build;
  const inputs = mutationsOfTable(table, build).filter(({ columns }) => columns.length > 0);
  const isConnected = behavior.pgResourceMatches(table, "query:resource:connection");
  return [
    ...(isConnected ? [inflection.filterType(table), inflection.tableConnectionType(table.codec)] : []),
    ...inputs.map((mutation) => inflection.tableMutationInput(mutation)),
  ];
}

/** As validateSchema does, which core is kept from by `assumeValid`. */
async function validateInTurns(schema: GraphQLSchema, giveWay: GiveWay): Promise<void> {
  const types = Object.entries(schema.getTypeMap());
  const errors: GraphQLError[] = [];
  for (let start = 0; start < types.length; start += TYPES_VALIDATED_AT_ONCE) {
    await giveWay();
    const some = Object.fromEntries(types.slice(start, start + TYPES_VALIDATED_AT_ONCE));
    const part: GraphQLSchema = Object.create(schema, {
      getTypeMap: { value: () => some },
      __validationErrors: { value: undefined, writable: true },
    });
    errors.push(...validateSchema(part));
  }
  if (errors.length > 0) throw new AggregateError(errors, `The schema is not valid: ${errors[0]!.message}`);
}

function tablesOf({ pgResources }: Build): Table[] {
  return Object.values(pgResources).filter(isTable);
}
