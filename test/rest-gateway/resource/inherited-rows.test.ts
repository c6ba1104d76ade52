import { expect, test } from "vitest";
import { useFixture } from "../../fixture.ts";
import { serveGraphQL, tokenFor } from "../../graphql.ts";

const served = useFixture(() =>
  serveGraphQL({
    template: "empty",
    before: `
      create table public.animals (id int primary key, name text);
      create table public.dogs (bark text, primary key (id)) inherits (public.animals);
      insert into public.animals values (1, 'Animal'), (2, 'Alone');
      insert into public.dogs values (1, 'Dog', 'Woof');
      grant all on all tables in schema public to authenticated`,
  }),
);

const ask = async (method: string, path: string, body?: object) => {
  const response = await fetch(`${served.service.url}/api/v1/${path}`, {
    method,
    headers: { Authorization: `Bearer ${tokenFor(1)}`, "Content-Type": "application/json" },
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

test("rows with a unique id are read and changed, in the table and in the inheriting one", async () => {
  expect(await ask("GET", "animals/2")).toEqual({ status: 200, body: { id: 2, name: "Alone" } });
  expect(await ask("PATCH", "animals/2", { name: "Alone" })).toMatchObject({ status: 200 });
  expect(await ask("GET", "dogs/1")).toEqual({ status: 200, body: { id: 1, name: "Dog", bark: "Woof" } });
});
