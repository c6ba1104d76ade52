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
    grant usage on schema public to anon;
    grant select on public.readings, public.extremes to anon;
    grant execute on function public.spread, public.no_spread to anon;`,
});

test.each([
  ["a view", "extremes { most fewest }"],
  ["a function", "spread { most fewest }"],
  ["a table without a key", "readings { most: value fewest: value }"],
])("a row of %s in which all is null is there", async (_, question) => {
  const [field] = question.split(" ");
  expect(await generated.read(anonymous, `{ ${question} }`)).toEqual({ [field!]: [{ most: null, fewest: null }] });
});

test("a function that returns one row returns none when all of it is null", async () => {
  expect(await generated.read(anonymous, "{ noSpread { most } }")).toEqual({ noSpread: null });
});
