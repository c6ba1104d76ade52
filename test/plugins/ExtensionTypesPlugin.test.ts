import { describe, expect, test } from "vitest";
import { useFixture } from "../fixture.ts";
import { serveGraphQL } from "../graphql.ts";

/** A type like the one of PostGIS: with a text of its own, which is hexadecimal there, a cast to json, and an input that reads both. */
const GEOMETRY = `
  create schema gis;
  grant usage on schema gis to anon;
  create type gis.geometry;
  create function gis.geometry_in(cstring) returns gis.geometry language internal immutable strict as 'textin';
  create function gis.geometry_out(gis.geometry) returns cstring language internal immutable strict as 'textout';
  create type gis.geometry (input = gis.geometry_in, output = gis.geometry_out, like = text);
  create cast (gis.geometry as text) without function;
  create function gis.json(shape gis.geometry) returns json language sql immutable strict as $$
    select case when shape::text like '{%' then shape::text::json else
      json_build_object('type', 'Point', 'coordinates', to_json(string_to_array(substr(shape::text, 7), ' ')::numeric[]))
    end
  $$;
  create cast (gis.geometry as json) with function gis.json(gis.geometry);
  create domain gis.place as gis.geometry;`;

const graphql = useFixture(() =>
  serveGraphQL({
    template: "empty",
    settings: { REST_REQUIRE_APIKEY: "false" },
    before: `
      ${GEOMETRY}
      create table public.sites (id int primary key, shape gis.geometry, shapes gis.geometry[], place gis.place);
      create function public.centre(site public.sites) returns gis.geometry stable language sql as 'select site.shape';
      grant usage on schema public to anon;
      grant select, insert on public.sites to anon;
      grant execute on function public.centre to anon;
      insert into public.sites values (1, 'POINT 1.50 2', array['POINT 1 2', null]::gis.geometry[], 'POINT 3 4');
      insert into public.sites values (2)`,
  }),
);

const point = (...coordinates: number[]) => ({ type: "Point", coordinates });

describe("a type that has a cast to json", () => {
  test("is read as JSON, as at /rest/v1: alone, in lists, of a domain and of a function", async () => {
    const { data } = await graphql.ask("{ sites { edges { node { id shape shapes place centre } } } }");
    const [one, none] = data.sites.edges.map(({ node }: { node: object }) => node);
    const read = { shape: point(1.5, 2), shapes: [point(1, 2), null], place: point(3, 4) };
    expect(one).toEqual({ id: "1", ...read, centre: read.shape });
    expect(none).toEqual({ id: "2", shape: null, shapes: null, place: null, centre: null });
    const rest = await fetch(`${graphql.service.url}/rest/v1/sites?id=eq.1&select=shape,shapes,place`);
    expect(await rest.json()).toEqual([read]);
  });

  test("is returned as JSON, or as text", async () => {
    const create = "mutation ($input: CreateSiteInput!) { createSite(input: $input) { shape shapes place } }";
    const input = { id: 3, shape: point(5, 6), shapes: [point(7, 8)], place: "POINT 9 10" };
    const { data } = await graphql.ask(create, { variables: { input } });
    expect(data.createSite).toEqual({ shape: point(5, 6), shapes: [point(7, 8)], place: point(9, 10) });
  });
});
