import { readFileSync } from "node:fs";
import { join } from "node:path";
import { setImmediate as nextTurn } from "node:timers/promises";
import { type GraphQLObjectType, printSchema } from "grafast/graphql";
import { makeSchema } from "graphile-build";
import { expect, test } from "vitest";
import { buildSchemaInSteps } from "../../../graphql/schemas/stepwise-build.ts";
import { collectGarbage } from "../../../runtime/memory/collect-garbage.ts";
import { openPreset } from "../../plugins/open-preset.ts";
import { until } from "../../until.ts";

const ODD = readFileSync(join(import.meta.dirname, "../../plugins/odd-schema.sql"), "utf8");
const tables = (count: number) => `
  do $$ begin for n in 1..${count} loop
    execute format('create table public.thing_%s (id int primary key, title text)', n);
  end loop; end $$;
  grant select, insert, update, delete on all tables in schema public to authenticated`;
const MANY = tables(300);

/** Each table refers to the one before it. */
const CHAIN = `
  create table public.thing_1 (id int primary key);
  do $$ begin for n in 2..400 loop
    execute format('create table public.thing_%s (id int primary key references public.thing_%s)', n, n - 1);
  end loop; end $$;
  grant select, insert, update, delete on all tables in schema public to authenticated`;
/** GraphQL has no type for an enum without values, and so none for a table that has no other columns. */
const FIELDLESS = `
  create type public.nothing as enum ();
  create table public.bare (nothing public.nothing);
  create table public.things (id int primary key, bare public.bare);
  grant select on all tables in schema public to authenticated`;

/** Types that no other schema of this file has. */
const RARE_TYPES =
  "create table public.rare_things (id int2 primary key, lasted interval[], seen timetz[], path line);";

const ENDLESS = new AbortController().signal;

test.each([
  ["our own", {}],
  ["odd", { template: "empty", sql: ODD }],
  ["large", { template: "empty", sql: tables(100) }],
  ["empty", { template: "empty" }],
  ["without fields for some table", { template: "empty", sql: FIELDLESS }],
] as const)("a database that is %s has the same schema as when built in one step", async (_, given) => {
  await using opened = await openPreset(given);
  const inTurns = await buildSchemaInSteps(opened.preset, ENDLESS);
  const atOnce = await makeSchema(opened.preset);
  expect(printSchema(inTurns.schema)).toBe(printSchema(atOnce.schema));
});

test("a path of 400 foreign keys does not exceed the stack", async () => {
  await using opened = await openPreset({ template: "empty", sql: CHAIN });
  const { schema } = await buildSchemaInSteps(opened.preset, ENDLESS);
  const last = schema.getType("Thing400") as GraphQLObjectType;
  expect(Object.keys(last.getFields())).toEqual(["id", "thing399"]);
});

test("the event loop is free between the steps, none of which is a large part of the build", async () => {
  await using opened = await openPreset({ template: "empty", sql: MANY });
  let least = 1;
  // The first one compiles the code that the others run, and the collector may come at any time.
  for (let build = 0; build < 8 && least >= 1 / 5; build++) least = Math.min(least, await longestShare(opened.preset));
  expect(least).toBeLessThan(1 / 5);
});

/** Returns the largest share of a build's processor time that passes without a turn for other work. */
async function longestShare(preset: GraphileConfig.Preset): Promise<number> {
  const begunAt = usedProcessorTime();
  let seenAt = begunAt;
  let longest = 0;
  let next = setImmediate(function take() {
    const used = usedProcessorTime();
    longest = Math.max(longest, used - seenAt);
    seenAt = used;
    next = setImmediate(take);
  });
  await buildSchemaInSteps(preset, ENDLESS);
  clearImmediate(next);
  return longest / (usedProcessorTime() - begunAt);
}

function usedProcessorTime(): number {
  const { user, system } = process.threadCpuUsage();
  return user + system;
}

test("an aborted build ends early", async () => {
  await using opened = await openPreset({ template: "empty", sql: MANY });
  const unwanted = AbortSignal.abort(new Error("gone"));
  await expect(buildSchemaInSteps(opened.preset, unwanted)).rejects.toThrow("gone");
});

test("an unused schema is garbage collected, with all its parts, even the first one with some types", async () => {
  await using opened = await openPreset({ template: "empty", sql: `${RARE_TYPES} ${tables(20)}` });
  const made: WeakRef<object>[] = [];
  const note = (object: object) => void made.push(new WeakRef(object));
  const plugin: GraphileConfig.Plugin = {
    name: "NotePlugin",
    gather: { hooks: { pgIntrospection_introspection: (_info, { introspection }) => note(introspection) } },
    schema: {
      hooks: {
        build(build) {
          note(build);
          return build;
        },
      },
    },
  };
  for (let version = 0; version < 4; version++) {
    const { schema } = await buildSchemaInSteps({ extends: [opened.preset], plugins: [plugin] }, ENDLESS);
    note(schema);
  }
  // The last one may still be on the stack.
  const isOfLast = (index: number) => index >= made.length - 3;
  await until(async () => {
    await nextTurn();
    collectGarbage();
    return made.every((object, index) => isOfLast(index) || object.deref() === undefined);
  });
  expect(made).toHaveLength(12);
});
