import { setImmediate } from "node:timers/promises";
import { buildInflection, gather, getBuilder, type SchemaBuilder } from "postgraphile/graphile-build";
import type { GraphQLSchema } from "postgraphile/graphql";
import { fieldlessFunctions } from "../fieldless-functions.ts";
import type { LeftOut } from "../left-out.ts";
import { rememberNames } from "../remember-names.ts";
import { isTable, outputTypeOf, type Table } from "../table.ts";
import { mutationsOfTable } from "../table-mutations.ts";
import { type TableNames, tableNames } from "../table-names.ts";
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
const TURN_MS = 20;

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
  const preset = { extends: [given], plugins: [gatherInTurns(giveWay)] };
  const { resolvedPreset } = getBuilder(preset);
  const inflection = rememberNames(buildInflection(resolvedPreset));
  const input = await gather(resolvedPreset, { inflection });
  await giveWay();
  const builder = getBuilder(resolvedPreset, inflection);
  const postponed = new PostponedFields(builder, withoutFields);
  const build = builder.createBuild(input);
  await initializeInTurns(builder, build, giveWay);
  if (!(await makeTypesInTurns(build, postponed, giveWay))) return null;
  builder.createBuild = () => build;
  const schema = builder.buildSchema(input);
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

/** Where one table comes after the other: to give way among what is done side by side would change the order of the schema. */
function gatherInTurns(giveWay: GiveWay): GraphileConfig.Plugin {
  return {
    name: "GatherInTurnsPlugin",
    gather: {
      hooks: {
        pgTables_PgResourceOptions_relations: giveWay,
        pgTables_PgResourceOptions_relations_post: giveWay,
      },
    },
  };
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

/** Returns whether each type has the fields that it seemed to have. */
async function makeTypesInTurns(build: Build, postponed: PostponedFields, giveWay: GiveWay): Promise<boolean> {
  let isAsAssumed = true;
  const settle = async () => {
    const steps = postponed.settle();
    for (let step = steps.next(); ; step = steps.next()) {
      await giveWay();
      if (!step.done) continue;
      isAsAssumed &&= step.value;
      return;
    }
  };
  for (const table of tablesOf(build)) {
    if (build.behavior.pgResourceMatches(table, "resource:select")) outputTypeOf(build, table.codec);
    await settle();
  }
  for (const root of ["Query", "Mutation", "Subscription"]) {
    build.getTypeByName(build.inflection.builtin(root));
    await settle();
  }
  return isAsAssumed;
}

function tablesOf({ pgResources }: Build): Table[] {
  return Object.values(pgResources).filter(isTable);
}
