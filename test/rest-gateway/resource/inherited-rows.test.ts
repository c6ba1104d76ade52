import { expect, test } from "vitest";
import { digestOf } from "../../../http/preconditions.ts";
import { useFixture } from "../../fixture.ts";
import { serveGraphQL, tokenFor } from "../../graphql.ts";

const served = useFixture(() =>
  serveGraphQL({
    template: "empty",
    before: `
      create table public.animals (id int primary key, name text);
      create table public.dogs (bark text, primary key (id)) inherits (public.animals);
      create table public.calls (name text);
      create function public.greet(animal public.animals) returns void language sql
        begin atomic insert into public.calls values (animal.name); end;
      create function public.feed(animal public.animals) returns text language sql
        begin atomic insert into public.calls values (animal.name) returning name; end;
      create function public.wash(animal public.animals) returns public.animals language plpgsql as
        $$ begin insert into public.calls values (animal.name); return animal; end $$;
      create function public.pet(animal public.animals) returns setof text language sql
        begin atomic insert into public.calls values (animal.name), (animal.name) returning name; end;
      insert into public.animals values (1, 'Animal'), (2, 'Alone');
      insert into public.dogs values (1, 'Dog', 'Woof');
      grant all on all tables in schema public to authenticated`,
  }),
);

const ask = async (method: string, path: string, body?: object, more: Readonly<Record<string, string>> = {}) => {
  const response = await fetch(`${served.service.url}/api/v1/${path}`, {
    method,
    headers: { Authorization: `Bearer ${tokenFor(1)}`, "Content-Type": "application/json", ...more },
    ...(body && { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  return { status: response.status, body: text && JSON.parse(text) };
};

test.each([
  ["GET", undefined],
  ["PATCH", { name: "Cat" }],
  ["PUT", { id: 1, name: "Cat" }],
  ["DELETE", undefined],
])("%s of an id that also exists in an inheriting table is refused, and changes neither row", async (method, body) => {
  const { status, body: response } = await ask(method, "animals/1", body);
  expect([status, response.error.code]).toEqual([409, "RESOURCE_CONFLICT"]);
  expect(await served.sql("select id, name from animals order by name")).toEqual([
    { id: 2, name: "Alone" },
    { id: 1, name: "Animal" },
    { id: 1, name: "Dog" },
  ]);
});

test.each(["greet", "feed", "wash", "pet"])("an action on such an id is refused: %s", async (action) => {
  const { status, body } = await ask("POST", `animals/1/${action}`);
  expect([status, body.error?.code]).toEqual([409, "RESOURCE_CONFLICT"]);
  expect(await served.sql("select name from calls")).toEqual([]);
});

test("an action on such an id is refused, although only one of the rows has the tag", async () => {
  const tag = `"${digestOf(JSON.stringify({ id: 1, name: "Dog" }))}"`;
  expect(await ask("POST", "animals/1/pet", undefined, { "If-Match": tag })).toMatchObject({ status: 409 });
  expect(await served.sql("select name from calls")).toEqual([]);
});

test("an action on a unique id is run once", async () => {
  expect(await ask("POST", "animals/2/greet")).toMatchObject({ status: 204 });
  expect(await ask("POST", "animals/2/feed")).toMatchObject({ status: 200 });
  expect(await ask("POST", "animals/2/wash")).toMatchObject({ status: 200, body: { id: 2, name: "Alone" } });
  expect(await ask("POST", "animals/2/pet")).toMatchObject({ status: 200, body: ["Alone", "Alone"] });
  expect(await served.sql("select count(*)::int from calls")).toEqual([{ count: 5 }]);
});

test("rows with a unique id are read and changed, in the table and in the inheriting one", async () => {
  expect(await ask("GET", "animals/2")).toEqual({ status: 200, body: { id: 2, name: "Alone" } });
  expect(await ask("PATCH", "animals/2", { name: "Alone" })).toMatchObject({ status: 200 });
  expect(await ask("GET", "dogs/1")).toEqual({ status: 200, body: { id: 1, name: "Dog", bark: "Woof" } });
});
