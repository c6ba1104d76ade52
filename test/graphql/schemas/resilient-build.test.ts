import { type GraphQLSchema, isObjectType } from "grafast/graphql";
import { describe, expect, test } from "vitest";
import { buildServableSchema } from "../../../graphql/schemas/resilient-build.ts";
import type { BuiltSchema } from "../../../graphql/schemas/stepwise-build.ts";
import { openPreset, type PresetOptions } from "../../plugins/open-preset.ts";

const GRANTED = `
  grant usage on schema public to anon;
  create table public.b (id int primary key, n int);
  grant select on public.b to anon;
`;

async function build(sql: string, options: PresetOptions = {}): Promise<BuiltSchema> {
  await using opened = await openPreset({ template: "empty", sql: `${GRANTED} ${sql}`, ...options });
  const built = await buildServableSchema(opened.preset, new AbortController().signal);
  return built;
}

function fieldsOf(schema: GraphQLSchema, name: string): string[] {
  const type = schema.getType(name);
  return isObjectType(type) ? Object.keys(type.getFields()) : [];
}

describe("the schema", () => {
  test.each([
    [
      "a row argument that is not first, of a relation that may not be inserted into",
      "create function public.bump(x int, bs b) returns int language sql as 'select 1'",
      ["function public.bump(int4, public.b)"],
    ],
    [
      "an array of such rows",
      "create function public.bump(bs b[]) returns int language sql as 'select 1'",
      ["function public.bump(public.b[])"],
    ],
    [
      "an argument of an enum without values",
      "create type public.none as enum (); create function public.choose(x public.none) returns int language sql as 'select 1'",
      ["function public.choose(public.none)"],
    ],
    [
      "a result of rows without a column that GraphQL shows",
      "create table public.words (w text); comment on column public.words.w is '@behavior -attribute:select'; create function public.say() returns public.words language sql as 'select null::public.words'",
      ["function public.say()"],
    ],
    [
      "a comment that asks for global ids",
      `create function public.find(x int, id b) returns int language sql stable as 'select 1'; grant insert on public.b to anon; comment on function public.find(int, b) is '@arg1variant nodeId'`,
      ['"@arg1variant nodeId" in the comment on function public.find(int4, public.b)'],
    ],
    [
      "a comment that orders by a column that is not there",
      `comment on table public.b is e'@name bee\n@order nothing\nThe table.'`,
      ['"@order nothing" in the comment on table public.b'],
    ],
    [
      "a reference to several rows",
      `create table public.c (id int primary key, b_id int references public.b); comment on table public.b is '@ref others via:(id)->c(b_id)'`,
      ['"@ref others via:(id)->c(b_id)" in the comment on table public.b'],
    ],
    [
      "a reference by several paths",
      `create table public.c (id int primary key, b_id int references public.b, other_id int references public.b);
      comment on table public.c is e'@ref any via:(b_id)->b(id) singular\\n@refVia any via:(other_id)->b(id)'`,
      ['"@refVia any via:(other_id)->b(id)" in the comment on table public.c'],
    ],
    [
      "a connection of related rows",
      `create table public.c (id int primary key, b_id int constraint c_b references public.b); grant select on public.c to anon;
      comment on constraint c_b on public.c is '@behavior +manyRelation:resource:connection'`,
      ['"@behavior +manyRelation:resource:connection" in the comment on constraint c_b on public.c'],
    ],
    [
      "a connection of a function's rows",
      `create function public.bees() returns setof b language sql stable as 'select * from b'; comment on function public.bees() is '@behavior -queryField:resource:list +queryField:resource:connection'`,
      [
        '"@behavior -queryField:resource:list +queryField:resource:connection" in the comment on function public.bees()',
      ],
    ],
    [
      "a union of tables",
      `create type public.shared as (id int); comment on type public.shared is '@interface mode:union'; comment on table public.b is '@implements Shared'`,
      [
        '"@interface mode:union" in the comment on type public.shared',
        '"@implements Shared" in the comment on table public.b',
      ],
    ],
  ])("is built without %s, and with everything else", async (_, sql, objects) => {
    const { schema, omitted: leftOut } = await build(
      `${sql}; create function public.fine() returns int language sql as 'select 1'`,
    );
    expect(leftOut.map(({ object }) => object)).toEqual(objects);
    expect(leftOut.every(({ isBuildFault: isFault }) => isFault)).toBe(true);
    expect(fieldsOf(schema, "Mutation")).toContain("fine");
    expect([...fieldsOf(schema, "B"), ...fieldsOf(schema, "Bee")]).toEqual(expect.arrayContaining(["id", "n"]));
  });

  test("with global ids is built without a comment that makes an argument one", async () => {
    const { omitted } = await build(
      `create function public.find(x int, id b) returns int language sql stable as 'select 1'; grant insert on public.b to anon;
      comment on function public.find(int, b) is '@arg1variant nodeId'`,
      { nodes: true },
    );
    expect(omitted.map(({ object }) => object)).toEqual([
      '"@arg1variant nodeId" in the comment on function public.find(int4, public.b)',
    ]);
  });
});
