import { describe, expect, test } from "vitest";
import { anonymous } from "../db/callers.ts";
import { useGeneratedSchema } from "./generated-schema.ts";

const generated = useGeneratedSchema({
  template: "empty",
  sql: `
    create type public.stop as (name text, at timestamptz);
    create type public.leg as (stops public.stop[]);
    create domain public.valid_stop as public.stop check ((value).name <> '');
    create domain public.named_stop as public.valid_stop;
    create table public.routes (id int primary key, stops public.stop[], leg public.leg);
    insert into public.routes values
      (1, array[null, row('a', null), row(null, null)]::public.stop[], row(array[null, row('c', '2026-01-01Z')]::public.stop[])),
      (2, '{}', row('{}')), (3, null, row(null));
    create domain public.valid_route as public.routes check ((value).id > 0);
    create table public.visits (id int primary key, stop public.named_stop, stops public.valid_stop[]);
    insert into public.visits values (1, row('a', null), array[row('b', null)]::public.valid_stop[]);
    create function public.a_stop() returns public.named_stop stable language sql as $$ select row('a', null)::public.named_stop $$;
    create function public.no_stop() returns public.valid_stop stable language sql as $$ select null::public.valid_stop $$;
    create function public.some_stops() returns setof public.valid_stop stable rows 10 language sql
      as $$ select row(name, null)::public.valid_stop from unnest(array['a', 'b']) as name $$;
    create function public.list_of_stops() returns public.valid_stop[] stable language sql
      as $$ select array[row('a', null)::public.valid_stop, null] $$;
    create function public.a_route() returns public.valid_route stable language sql as $$ select r::public.valid_route from public.routes r where id = 2 $$;
    create function public.name_of(prefix text, stop public.named_stop) returns text stable language sql as $$ select prefix || (stop).name $$;
    create function public.add_stop(name text) returns public.named_stop language sql as $$ select row(name, null)::public.named_stop $$;
    create function public.add_stops() returns public.stop[] language sql as $$ select array[row('a', null)::public.stop, null] $$;
    create function public.stops_of_visit(visit public.visits) returns public.stop[] stable language sql
      as $$ select array[null, row('b', null)::public.stop] $$;
    comment on function public.stops_of_visit is '@name all_stops';
    grant execute on all functions in schema public to anon;
    grant select on public.visits to anon;
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

describe("a domain over a composite type", () => {
  const read = (query: string) => generated.read(anonymous, query);

  test("has the fields of the type, in columns and lists", async () => {
    expect(await read("{ visit(id: 1) { stop { name } stops { name } } }")).toEqual({
      visit: { stop: { name: "a" }, stops: [{ name: "b" }] },
    });
  });

  test("is the result of functions: one, none, several, a list, a row of a table", async () => {
    expect(
      await read("{ aStop { name at } noStop { name } listOfStops { name } aRoute { id stops { name } } }"),
    ).toEqual({
      aStop: { name: "a", at: null },
      noStop: null,
      listOfStops: [{ name: "a" }, null],
      aRoute: { id: "2", stops: [] },
    });
    expect(await read("{ someStops { name } }")).toEqual({ someStops: [{ name: "a" }, { name: "b" }] });
    expect(await read('mutation { addStop(input: { name: "c" }) { name } }')).toEqual({ addStop: { name: "c" } });
    await expect(read('mutation { addStop(input: { name: "" }) { name } }')).rejects.toThrow();
  });

  test("is the argument of functions", async () => {
    expect(await read('{ nameOf(prefix: "c", stop: { name: "d" }) }')).toEqual({ nameOf: "cd" });
  });
});

describe("an array of a composite type", () => {
  test("is the result of queries, mutations and fields of a row, with its null items", async () => {
    const query = "{ listOfStops { name } visits { edges { node { allStops { name } } } } }";
    expect(await generated.read(anonymous, query)).toEqual({
      listOfStops: [{ name: "a" }, null],
      visits: { edges: [{ node: { allStops: [null, { name: "b" }] } }] },
    });
    expect(await generated.read(anonymous, "mutation { addStops { name } }")).toEqual({
      addStops: [{ name: "a" }, null],
    });
  });
});
