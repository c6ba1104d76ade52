import { isObjectType } from "grafast/graphql";
import { beforeAll, describe, expect, test } from "vitest";
import { buildServableSchema } from "../../graphql/schemas/resilient-build.ts";
import type { OmittedObject } from "../../plugins/omitted-objects.ts";
import { alice, anonymous } from "../db/callers.ts";
import { useGeneratedSchema } from "./generated-schema.ts";
import { openPreset } from "./open-preset.ts";

const SQL = `
  insert into public.users (name, email) values ('Ann', 'ann@example.org');
  insert into public.articles (author_id, title, content) values (1, 'Boats', '');
  create function public.search(keyword text, lang text) returns setof public.articles language sql stable
    as 'select * from public.articles where false';
  create function public.me(x int) returns int language sql stable as 'select x';
  grant execute on function public.me(int) to anon;

  create function public.greet(name text, greeting text default 'Hello') returns text language sql stable
    as $$ select 'first: ' || greeting || ' ' || name $$;
  create function public.greet(name text) returns text language sql stable as $$ select 'second: ' || name $$;
  create function public.greet(n int) returns text language sql stable as $$ select 'third: ' || n $$;
  comment on function public.greet(int) is '@name greet_often';
  create function public.greet(n bigint) returns text language sql volatile as $$ select 'changed: ' || n $$;

  create function public.label(article public.articles) returns text language sql stable as $$ select article.title $$;
  create function public.label(person public.users) returns text language sql stable as $$ select person.name $$;
  create function public.label(person public.users, loud boolean) returns text language sql stable
    as $$ select upper(person.name) $$;
  comment on function public.label(public.users, boolean) is '@name loud_label';

  create function public.vary(variadic a int[]) returns int language sql stable as 'select 1';
  create function public.any_one(a anyelement) returns anyelement language sql stable as 'select a';
  create function public.anything() returns record language sql stable as 'select 1, 2';
  create procedure public.proceed() language sql as 'select 1';
  create aggregate public.total(int) (sfunc = int4pl, stype = int, initcond = '0');
  create type public.nothing as enum ();
  create function public.choose(a int) returns public.nothing language sql stable as 'select null::public.nothing';
  create type public.pair as (a int, b int);
  create domain public.checked_pair as public.pair;
  create function public.sets() returns setof public.pair[] language sql stable as 'select null::public.pair[]';
  create function public.sets_of_domain() returns setof public.checked_pair[] language sql as 'select null::public.checked_pair[]';
  create table public.columnless ();
  create table public.closed_columnless ();
  create function public.touch() returns trigger language plpgsql as 'begin return new; end';
  create function public.closed(variadic a int[]) returns int language sql stable as 'select 1';
  grant execute on function public.greet(text, text), public.greet(text), public.greet(int), public.greet(bigint),
    public.label(public.articles), public.label(public.users), public.label(public.users, boolean),
    public.vary, public.any_one, public.anything, public.total, public.choose, public.sets, public.sets_of_domain,
    public.touch to anon, authenticated;
  grant select on public.columnless to anon;
  grant execute on procedure public.proceed to anon;
`;

const generated = useGeneratedSchema({ sql: SQL });
const read = (source: string) => generated.read(anonymous, source);

function fieldsOf(name: string): string[] {
  const type = generated.schema.getType(name);
  return isObjectType(type) ? Object.keys(type.getFields()) : [];
}

let leftOut: readonly OmittedObject[];
beforeAll(async () => {
  await using opened = await openPreset({ sql: SQL });
  ({ omitted: leftOut } = await buildServableSchema(opened.preset, new AbortController().signal));
});

describe("functions with one name", () => {
  test("a function that no role may execute does not take a field's name", async () => {
    expect(await read('{ search(keyword: "boat") { title } }')).toEqual({ search: [{ title: "Boats" }] });
  });

  test("the oldest overload is the field, whichever roles may execute another", async () => {
    expect(await generated.read({ ...alice, sub: "1" }, "{ me { name } }")).toEqual({ me: { name: "Ann" } });
    expect(leftOut).toContainEqual({
      object: "function public.me(int4)",
      reason: "public.me() was created before it and has its name",
      fix: "comment on function public.me(int4) is '@name another_name';",
      isBuildFault: false,
    });
  });

  test("an omitted argument has its default, and another function is not called instead", async () => {
    expect(await read('{ greet(name: "Ann") other: greet(name: "Ann", greeting: "Bye") }')).toEqual({
      greet: "first: Hello Ann",
      other: "first: Bye Ann",
    });
    expect(leftOut.map(({ object }) => object)).toContain("function public.greet(text)");
  });

  test("a comment names the other overloads, and a query and a mutation with one name do not clash", async () => {
    expect(await read("{ greetOften(n: 2) }")).toEqual({ greetOften: "third: 2" });
    expect(await read("mutation { greet(input: { n: 3 }) }")).toEqual({ greet: "changed: 3" });
  });

  test("overloads for different row types are fields of each, and further ones are named by a comment", async () => {
    expect(await read("{ articles { edges { node { label author { label loudLabel(loud: true) } } } } }")).toEqual({
      articles: { edges: [{ node: { label: "Boats", author: { label: "Ann", loudLabel: "ANN" } } }] },
    });
  });
});

describe("a function that GraphQL cannot call", () => {
  test("is reported with the reason, unless no role may execute it or only Postgres calls it", () => {
    const reasons = leftOut.map(({ object, reason }) => [object, reason]).sort();
    expect(reasons.filter(([object]) => !/greet|me\(|^table/.test(object!))).toEqual([
      ["aggregate public.total(int4)", "GraphQL calls no aggregates"],
      ["function public.any_one(anyelement)", "it takes or returns anyelement, which stands for any type"],
      ["function public.anything()", "it returns record without saying which columns that has"],
      ["function public.choose(int4)", "GraphQL has no type for a parameter or the result"],
      ["function public.sets()", "it returns a set of arrays of a composite type"],
      ["function public.sets_of_domain()", "it returns a set of arrays of a composite type"],
      ["function public.vary(int4[])", "it takes VARIADIC arguments"],
      ["procedure public.proceed()", "GraphQL calls no procedures"],
    ]);
    expect(leftOut.some(({ object, isBuildFault }) => isBuildFault && object.includes("function"))).toBe(false);
  });

  test("is no field", () => {
    const fields = [...fieldsOf("Query"), ...fieldsOf("Mutation")];
    expect(
      fields.filter((name) => /^(vary|anyOne|anything|proceed|total|choose|touch|closed|sets)/.test(name)),
    ).toEqual([]);
  });
});

test("a table without columns that clients may use is reported, with its name for health", () => {
  expect(leftOut.filter(({ object }) => object.startsWith("table"))).toEqual([
    {
      object: "table public.columnless",
      reason: "it has no columns, and a type of GraphQL has at least one field",
      fix: "-- Add a column to public.columnless, or revoke the privileges on it.",
      isBuildFault: true,
      holder: { kind: "table", schema: "public", name: "columnless" },
    },
  ]);
});
