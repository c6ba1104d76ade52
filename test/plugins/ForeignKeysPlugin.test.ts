import { isObjectType } from "grafast/graphql";
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
    create table public.replies (
      id int primary key, post int references public.posts, "postId" text, parent int references public.replies,
      tag_name text references public.tags (name)
    );
    create function public."tagName"(reply public.replies) returns text stable language sql as $$ select 'computed' $$;
    create table public.rooms (floors int4range, during daterange, primary key (floors, during without overlaps));
    create table public.bookings (
      id int primary key, floors int4range, during daterange,
      foreign key (floors, period during) references public.rooms (floors, period during)
    );
    create table public.notes (id int primary key, post int references public.posts);
    comment on column public.notes.post is '@behavior -attribute:select';
    create table public.orphans (id int primary key, post_id int not null);
    insert into public.orphans values (1, 404), (2, 1);
    alter table public.orphans add foreign key (post_id) references public.posts not valid;
    insert into public.countries values (1, 'DE', 5), (2, null, 6);
    insert into public.cities values (1, 'DE', 5), (2, null, null);
    insert into public.tags values ('x');
    insert into public.posts values (1, 'x');
    insert into public.replies values (1, null, null, null, null), (2, 1, 'of text', 1, 'x');
    grant usage on schema public to authenticated;
    grant select, insert on all tables in schema public to authenticated`,
});
const read = (source: string) => generated.read(alice, source);

function fieldsOf(type: string): Record<string, string> {
  const found = generated.schema.getType(type);
  if (!isObjectType(found)) throw new Error(`${type} is no type with fields`);
  return Object.fromEntries(Object.values(found.getFields()).map((field) => [field.name, String(field.type)]));
}

describe("a foreign key to columns with a unique index only", () => {
  test("is read as the row that it references, for one column and for several in another order", async () => {
    const query = "{ cities { edges { node { id country { id } countryByAreaAndCountryCode { id } } } } }";
    const country = { id: "1" };
    expect((await read(query)).cities.edges).toEqual([
      { node: { id: "1", country, countryByAreaAndCountryCode: country } },
      { node: { id: "2", country: null, countryByAreaAndCountryCode: null } },
    ]);
  });

  test("has a field in the reverse direction, too", async () => {
    expect(await read("{ country(id: 1) { cities { id } } }")).toEqual({ country: { cities: [{ id: "1" }] } });
  });

  test("does not turn the index into a key: a table without one stays a list", async () => {
    expect(await read("{ tags { name } posts { edges { node { tag { name } } } } }")).toEqual({
      tags: [{ name: "x" }],
      posts: { edges: [{ node: { tag: { name: "x" } } }] },
    });
    const query = generated.schema.getQueryType()!.getFields();
    expect(query.tag).toBeUndefined();
  });
});

test("a foreign key with a period, whose rows do not match by equal values, is not a relation", () => {
  expect(Object.keys(fieldsOf("Booking"))).toEqual(["id", "floors", "during"]);
  expect(Object.keys(fieldsOf("Room"))).toEqual(["floors", "during"]);
});

describe("the columns of a foreign key", () => {
  test("are fields beside their relations, under the names of their columns", async () => {
    expect(fieldsOf("City")).toMatchObject({ countryCode: "ID", country: "Country" });
    expect(await read("{ city(id: 1) { countryCode } other: city(id: 2) { countryCode } }")).toEqual({
      city: { countryCode: "DE" },
      other: { countryCode: null },
    });
  });

  test("have another name if theirs is taken: by the referenced table or by other columns; a function replaces them", async () => {
    expect(fieldsOf("Reply")).toEqual({
      id: "ID!",
      post: "Post",
      postId: "String",
      postId_: "ID",
      parent: "Reply",
      parentId: "ID",
      replies: "[Reply!]!",
      tagName: "String",
      tag: "Tag",
    });
    expect(await read("{ reply(id: 2) { parentId parent { id } post { id } postId postId_ tagName } }")).toEqual({
      reply: {
        parentId: "1",
        parent: { id: "1" },
        post: { id: "1" },
        postId: "of text",
        postId_: "1",
        tagName: "computed",
      },
    });
  });

  test("stay hidden if a comment hides them", () => {
    expect(Object.keys(fieldsOf("Note"))).toEqual(["id", "post"]);
  });

  test("can be read if the referenced row is missing", async () => {
    expect(await read("{ orphans { edges { node { id postId post { id } } } } }")).toEqual({
      orphans: {
        edges: [
          { node: { id: "1", postId: "404", post: null } },
          { node: { id: "2", postId: "1", post: { id: "1" } } },
        ],
      },
    });
  });

  test("are returned for a row that was just added, and only to roles that may read them", async () => {
    const query =
      "mutation { createNote(input: {id: 5, post: 1}) { id } createReply(input: {id: 5, parent: 2}) { parentId } }";
    expect((await generated.read(alice, query)).createReply).toEqual({ parentId: "2" });
  });
});
