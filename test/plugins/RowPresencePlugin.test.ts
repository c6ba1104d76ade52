import { expect, test } from "vitest";
import { anonymous } from "../db/callers.ts";
import { useGeneratedSchema } from "./generated-schema.ts";

const generated = useGeneratedSchema({
  template: "empty",
  sql: `
    create table public.readings (value integer, noted text);
    insert into public.readings (value) values (null);
    create view public.extremes with (security_invoker = true) as select max(value) as most, min(value) as fewest from public.readings;
    create function public.spread() returns table (most integer, fewest integer) stable language sql
      as 'select max(value), min(value) from public.readings';
    create function public.no_spread() returns public.extremes stable language sql as 'select null::public.extremes';
    create table public.bare (a text, b text);
    create table public.cold (a text, b text);
    create domain public.cold_one as public.cold;
    create domain public.cold_ones as public.cold[];
    create table public.wraps (
      id int primary key, bare public.bare, bares public.bare[], cold public.cold_one, colds public.cold_ones
    );
    insert into public.wraps (id) values (1);
    insert into public.wraps values (2, row('x', null), array[null, row(null, 'y')]::public.bare[], row('x', null), array[null, row(null, 'y')]::public.cold[]);
    create table public.listed (a text, b text);
    create function public.list() returns public.listed[] stable language sql
      as $$ select array[null, row('x', null)]::public.listed[] $$;
    grant usage on schema public to anon;
    grant select on public.readings, public.extremes, public.wraps, public.bare, public.cold, public.listed to anon;
    grant execute on function public.spread, public.no_spread, public.list to anon;`,
});

test.each([
  ["a view", "extremes { most fewest }"],
  ["a function", "spread { most fewest }"],
  ["a table without a key", "readings { most: value fewest: value }"],
])("a row of %s with only nulls exists", async (_, question) => {
  const [field] = question.split(" ");
  expect(await generated.read(anonymous, `{ ${question} }`)).toEqual({ [field!]: [{ most: null, fewest: null }] });
});

test("a function that returns one row returns null if all its columns are null", async () => {
  expect(await generated.read(anonymous, "{ noSpread { most } }")).toEqual({ noSpread: null });
});

test("a null row in a column, or in a list, is null", async () => {
  const row = (id: number) => `w${id}: wrap(id: ${id}) { bare { a b } bares { a b } cold { a b } colds { a b } }`;
  expect(await generated.read(anonymous, `{ ${row(1)} ${row(2)} list { a b } }`)).toEqual({
    w1: { bare: null, bares: [], cold: null, colds: [] },
    w2: {
      bare: { a: "x", b: null },
      bares: [null, { a: null, b: "y" }],
      cold: { a: "x", b: null },
      colds: [null, { a: null, b: "y" }],
    },
    list: [null, { a: "x", b: null }],
  });
});
