import { readFileSync } from "node:fs";
import { join } from "node:path";
import { makeSchema } from "postgraphile";
import { type GraphQLObjectType, printSchema } from "postgraphile/graphql";
import { expect, test } from "vitest";
import { makeSchemaInTurns } from "../../../plugins/serve/make-schema.ts";
import { openPreset } from "../open-preset.ts";

const ODD = readFileSync(join(import.meta.dirname, "../odd-schema.sql"), "utf8");
const MANY = `
  do $$ begin for n in 1..300 loop
    execute format('create table public.thing_%s (id int primary key, title text)', n);
  end loop; end $$;
  grant select, insert, update, delete on all tables in schema public to authenticated`;

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

const ENDLESS = new AbortController().signal;

test.each([
  ["our own", {}],
  ["odd", { template: "empty", sql: ODD }],
  ["large", { template: "empty", sql: MANY }],
  ["empty", { template: "empty" }],
  ["without fields for some table", { template: "empty", sql: FIELDLESS }],
] as const)("a database that is %s has the schema that it has in one go", async (_, given) => {
  await using opened = await openPreset(given);
  const inTurns = await makeSchemaInTurns(opened.preset, ENDLESS);
  const atOnce = await makeSchema(opened.preset);
  expect(printSchema(inTurns.schema)).toBe(printSchema(atOnce.schema));
});

test("a path of 400 foreign keys does not exceed the stack", async () => {
  await using opened = await openPreset({ template: "empty", sql: CHAIN });
  const { schema } = await makeSchemaInTurns(opened.preset, ENDLESS);
  const last = schema.getType("Thing400") as GraphQLObjectType;
  expect(Object.keys(last.getFields())).toEqual(["id", "thing399"]);
});

test("others have their turn between the steps", async () => {
  let turns = 0;
  let next = setImmediate(function take() {
    turns += 1;
    next = setImmediate(take);
  });
  const seen: number[] = [];
  const note = <Value>(value: Value) => {
    seen.push(turns);
    return value;
  };
  const plugin: GraphileConfig.Plugin = { name: "NotePlugin", schema: { hooks: { build: note, finalize: note } } };
  await using opened = await openPreset({ template: "empty", sql: MANY });
  await makeSchemaInTurns({ extends: [opened.preset], plugins: [plugin] }, ENDLESS);
  clearImmediate(next);
  const [begun, done] = seen;
  expect(done).toBeGreaterThan(begun!);
});

test("what is no longer wanted is not made to its end", async () => {
  await using opened = await openPreset({ template: "empty", sql: MANY });
  const unwanted = AbortSignal.abort(new Error("gone"));
  await expect(makeSchemaInTurns(opened.preset, unwanted)).rejects.toThrow("gone");
});
