import { expect, test } from "vitest";
import { anonymous } from "../db/callers.ts";
import { useGeneratedSchema } from "./generated-schema.ts";

const generated = useGeneratedSchema({
  template: "empty",
  sql: `
    create type public.stop as (name text, at timestamptz);
    create type public.leg as (stops public.stop[]);
    create table public.routes (id int primary key, stops public.stop[], leg public.leg);
    insert into public.routes values
      (1, array[null, row('a', null), row(null, null)]::public.stop[], row(array[null, row('c', '2026-01-01Z')]::public.stop[])),
      (2, '{}', row('{}')), (3, null, row(null));
    grant usage on schema public to anon;
    grant select on public.routes to anon;`,
});

test("a null in a list stays null in its position, and other values have their fields", async () => {
  const stop = (name: string | null, at: string | null = null) => ({ name, at });
  expect(
    await generated.read(
      anonymous,
      `{ one: route(id: 1) { ...all } two: route(id: 2) { ...all } three: route(id: 3) { ...all } }
      fragment all on Route { stops { name at } leg { stops { name at } } }`,
    ),
  ).toEqual({
    one: {
      stops: [null, stop("a"), stop(null)],
      leg: { stops: [null, stop("c", "2026-01-01T00:00:00.000Z")] },
    },
    two: { stops: [], leg: { stops: [] } },
    three: { stops: null, leg: { stops: null } },
  });
});
