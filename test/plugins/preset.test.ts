import {
  type GraphQLObjectType,
  type GraphQLSchema,
  isObjectType,
  lexicographicSortSchema,
  printSchema,
} from "grafast/graphql";
import { makeSchema } from "graphile-build";
import { describe, expect, test, vi } from "vitest";
import { useGeneratedSchema } from "./generated-schema.ts";
import { openPreset } from "./open-preset.ts";

const generated = useGeneratedSchema();

// This renews the file: npx vitest run test/plugins/preset.test.ts --update
test("plugins/schema.graphql is the schema of our own database", async () => {
  const text = `${printSchema(lexicographicSortSchema(generated.schema))}\n`;
  await expect(text).toMatchFileSnapshot("../../plugins/schema.graphql");
});

/** The schema of a database with this in it. */
async function schemaOf(sql: string, schemas = ["public"]): Promise<GraphQLSchema> {
  await using opened = await openPreset({ template: "empty", sql, schemas });
  return (await makeSchema(opened.preset)).schema;
}

const grantAll = "grant select on all tables in schema public to authenticated";

describe("a database", () => {
  test("without visible objects has a schema with the field isEmpty", async () => {
    const schema = await schemaOf("create table public.hidden (id int primary key)");
    expect(Object.keys(schema.getQueryType()!.getFields())).toEqual(["isEmpty"]);
    expect(schema.getMutationType()).toBeUndefined();
    expect(Object.keys(schema.getSubscriptionType()!.getFields())).toEqual(["live"]);
  });

  test("with two foreign keys on the same columns has one relation, and logs no warning", async () => {
    const warnings = vi.spyOn(console, "warn").mockImplementation(() => {});
    const schema = await schemaOf(`
      create table public.owners (id int primary key);
      create table public.pets (id int primary key, owner_id int references public.owners references public.owners);
      ${grantAll};`);
    const fieldsOf = (name: string) => Object.keys((schema.getType(name) as GraphQLObjectType).getFields());
    const said = warnings.mock.calls.flat();
    warnings.mockRestore();
    expect([fieldsOf("Pet"), fieldsOf("Owner"), said]).toEqual([["id", "owner", "ownerId"], ["id", "pets"], []]);
  });

  test("whose tables would share a name renames one of them, unless a comment does", async () => {
    const sql = `
      create table public.people (id int primary key); create table public.person (id int primary key);
      create table public.lines (id int primary key); create domain public."*/*" as bytea;
      create function public.any_image() returns public."*/*" language sql stable as 'select null::public."*/*"'; ${grantAll};`;
    const typesOf = (schema: GraphQLSchema) =>
      Object.fromEntries(
        Object.entries(schema.getQueryType()!.getFields()).map(([name, { type }]) => [name, `${type}`]),
      );
    expect(typesOf(await schemaOf(sql))).toEqual({
      anyImage: "Unnamed",
      line: "LineRecord",
      lines: "LineRecordConnection!",
      people: "PersonConnection!",
      person: "Person",
      personRecord: "PersonRecord",
      personRecords: "PersonRecordConnection!",
    });
    const comments = `
      comment on table public.person is '@name human';
      comment on table public.lines is '@name strokes';
      comment on domain public."*/*" is '@name any_type';`;
    expect(typesOf(await schemaOf(sql + comments))).toEqual({
      anyImage: "AnyType",
      human: "Human",
      humans: "HumanConnection!",
      people: "PersonConnection!",
      person: "Person",
      stroke: "Stroke",
      strokes: "StrokeConnection!",
    });
  });

  test("whose comment orders by an unknown column is refused with the comment", async () => {
    await expect(
      schemaOf(
        `create table public.things (id int primary key); ${grantAll}; comment on table public.things is '@order size desc'`,
      ),
    ).rejects.toThrow('"@order size desc" of public.things: there is no column "size"');
  });

  test("of several schemas prefixes the schema if it is not the first", async () => {
    const schema = await schemaOf(
      `create schema shop;
       grant usage on schema shop to authenticated;
       create table public.things (id int primary key);
       create table shop.things (id int primary key, thing_id int references public.things);
       create function shop.count_things() returns int language sql stable as 'select 1';
       ${grantAll};
       grant select on shop.things to authenticated`,
      ["public", "shop"],
    );
    expect(Object.keys(schema.getQueryType()!.getFields()).sort()).toEqual([
      "shopCountThings",
      "shopThing",
      "shopThings",
      "thing",
      "things",
    ]);
    expect(printSchema(schema)).toContain("type ShopThing {");
  });
});

describe("a relation", () => {
  const descriptionsOf = async (sql: string) => {
    const schema = await schemaOf(`
      create table public.homes (id int primary key);
      create table public.guests (id int primary key, home_id int constraint guests_home_id_fkey references public.homes);
      comment on constraint guests_home_id_fkey on public.guests is 'The home must exist.';
      ${sql};
      ${grantAll}`);
    const described = (type: string, field: string) => {
      const found = schema.getType(type);
      return isObjectType(found) ? found.getFields()[field]?.description : undefined;
    };
    return [described("Guest", "home"), described("Home", "guests")];
  };
  const BACK = "Reads and enables pagination through a set of `Guest`.";

  test("is described by its column, and not by the message of the constraint", async () => {
    expect(await descriptionsOf("comment on column public.guests.home_id is 'Where the guest stays.'")).toEqual([
      "Where the guest stays.",
      BACK,
    ]);
    expect(await descriptionsOf("")).toEqual(["Reads a single `Home` that is related to this `Guest`.", BACK]);
  });

  test("is described by the constraint's tag", async () => {
    const comment = String.raw`e'@forwardDescription The home.\n@backwardDescription Who stays here.\nThe home must exist.'`;
    const sql = `comment on constraint guests_home_id_fkey on public.guests is ${comment}`;
    expect(await descriptionsOf(sql)).toEqual(["The home.", "Who stays here."]);
  });
});
