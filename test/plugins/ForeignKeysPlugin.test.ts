import { describe, expect, test } from "vitest";
import { alice } from "../db/callers.ts";
import { useGeneratedSchema } from "./generated-schema.ts";

/** Unique indexes that are no constraints, as migrations of Rails and others make them. */
const generated = useGeneratedSchema({
  template: "empty",
  sql: `
    create table public.countries (id int primary key, code text, area int not null);
    create unique index on public.countries (code);
    create unique index on public.countries (code, area);
    create table public.cities (
      id int primary key, country_code text references public.countries (code), area int,
      foreign key (area, country_code) references public.countries (area, code)
    );
    create table public.tags (name text not null);
    create unique index on public.tags (name);
    create table public.posts (id int primary key, tag_name text references public.tags (name));
    insert into public.countries values (1, 'DE', 5), (2, null, 6);
    insert into public.cities values (1, 'DE', 5), (2, null, null);
    insert into public.tags values ('x');
    insert into public.posts values (1, 'x');
    grant usage on schema public to authenticated;
    grant select on all tables in schema public to authenticated`,
});
const read = (source: string) => generated.read(alice, source);

describe("a foreign key to columns that only an index makes unique", () => {
  test("is read as the row that it refers to, of one column and of several in another order", async () => {
    const query = "{ cities { edges { node { id country { id } countryByAreaAndCountryCode { id } } } } }";
    const country = { id: "1" };
    expect((await read(query)).cities.edges).toEqual([
      { node: { id: "1", country, countryByAreaAndCountryCode: country } },
      { node: { id: "2", country: null, countryByAreaAndCountryCode: null } },
    ]);
  });

  test("is followed the other way, too", async () => {
    expect(await read("{ country(id: 1) { cities { id } } }")).toEqual({ country: { cities: [{ id: "1" }] } });
  });

  test("makes no key of the index: a table without one stays a list", async () => {
    expect(await read("{ tags { name } posts { edges { node { tag { name } } } } }")).toEqual({
      tags: [{ name: "x" }],
      posts: { edges: [{ node: { tag: { name: "x" } } }] },
    });
    const query = generated.schema.getQueryType()!.getFields();
    expect(query.tag).toBeUndefined();
  });
});
