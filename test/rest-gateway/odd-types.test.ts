import { beforeAll, describe, expect, test } from "vitest";
import { useFixture } from "../fixture.ts";
import { openResources, type Resources } from "./resource/open-resources.ts";

/** A domain that clients see as `#0000ff`: PostgREST's data representations. */
const COLOUR = `
  create domain colour as int;
  create function to_hash(colour) returns json language sql immutable as $$ select to_json('#' || lpad(to_hex($1), 6, '0')) $$;
  create function from_hash(text) returns colour language sql immutable
    as $$ select ('x' || lpad(substr($1, 2), 8, '0'))::bit(32)::int $$;
  create function from_hash(json) returns colour language sql immutable as $$ select from_hash($1 #>> '{}') $$;
  create cast (colour as json) with function to_hash(colour) as implicit;
  create cast (json as colour) with function from_hash(json) as implicit;
  create cast (text as colour) with function from_hash(text) as implicit;`;

let ask: Resources["ask"];
const resources = useFixture(() =>
  openResources({
    template: "empty",
    settings: { REST_REQUIRE_APIKEY: "false" },
    sql: `
      create schema tools;
      create extension hstore schema tools;
      create extension citext schema tools;
      create extension ltree;
      ${COLOUR}
      grant usage on schema public, tools to anon;
      create domain traits as tools.hstore;
      create table things (id int primary key, said tools.hstore default 'by=>default', said_often tools.hstore[], trait traits,
        path ltree, pattern lquery, search ltxtquery, price money);
      insert into things values
        (1, 'a=>1, "b c"=>NULL', array['a=>1', null]::tools.hstore[], '', 'a.b', 'a.*', 'a & b', 12345.6);
      create table nicknames (nickname tools.citext primary key, id int unique, elder tools.citext references nicknames);
      insert into nicknames values ('Ada', 1, null), ('bob', 2, 'ADA');
      create table stars (id int primary key, "*" text, other text);
      insert into stars values (1, 'star', 'other');
      create table paints (shade colour primary key, id int unique, label text);
      insert into paints values (255, 1, 'blue');
      grant select, insert, update, delete on all tables in schema public to anon;
      grant usage on schema public to authenticated;
      grant select on nicknames to authenticated`,
  }),
);
beforeAll(async () => {
  ask = resources.ask;
});

const TELL = { Prefer: "return=representation" };

test.each([
  ["things", "1"],
  ["stars", "1"],
  ["paints", "%230000ff"],
])("a row of %s that was read is unchanged when it is written back", async (table, key) => {
  const [row] = (await ask(`/rest/v1/${table}?id=eq.1`)).body;
  const address = `/api/v1/${table}/${key}`;
  expect((await ask(address)).body).toEqual(row);

  const atTable = await ask(`/rest/v1/${table}?id=eq.1`, { method: "PATCH", body: row, headers: TELL });
  const put = await ask(address, { method: "PUT", body: row });
  const patch = await ask(address, { method: "PATCH", body: row });
  expect([atTable.body, put.body, patch.body]).toEqual([[row], row, row]);

  await ask(address, { method: "DELETE" });
  const made = await ask(`/api/v1/${table}`, { method: "POST", body: row });
  expect([made.status, made.body, made.headers.get("location")]).toEqual([201, row, address]);
  await ask(address, { method: "DELETE" });
  expect((await ask(`/rest/v1/${table}`, { method: "POST", body: [row], headers: TELL })).body).toEqual([row]);
});

test("an hstore may be sent as a text too, be empty, null, and absent for its default", async () => {
  const put = (body: object) => ask("/api/v1/things/7", { method: "PUT", body });
  const rows = [{ id: 7, said: '"a"=>"x=>y", b=>NULL' }, { id: 8, said: {} }, { id: 9, said: null }, { id: 10 }];
  const made = await ask("/api/v1/things", { method: "POST", body: rows });
  const said = (row: { said: unknown }) => row.said;
  expect(made.body.map(said)).toEqual([{ a: "x=>y", b: null }, {}, null, { by: "default" }]);
  expect((await put({ said: { 'a"b': "c'd", "": "\\" } })).body.said).toEqual({ 'a"b': "c'd", "": "\\" });
  expect((await put({})).body.said).toEqual({ by: "default" });
  const wrong = await put({ said: "no pairs" });
  expect([wrong.status, wrong.body.error.code]).toEqual([400, "VALIDATION_ERROR"]);
  for (const { id } of rows) await ask(`/api/v1/things/${id}`, { method: "DELETE" });
});

describe("a field", () => {
  test.each([
    ["things", "said", '"b c"=>NULL, a=>1'],
    ["things", "trait", ""],
    ["things", "path", "a.b"],
    ["nicknames", "nickname", "ADA"],
    ["things", "price", "$12,345.60"],
    ["stars", "*", "star"],
    ["paints", "shade", "#0000ff"],
  ])("with a type that Postgres can compare, %s.%s, can be filtered and sorted", async (table, name, value) => {
    const found = await ask(`/api/v1/${table}?${new URLSearchParams({ [name]: value })}`);
    expect([found.status, found.body.data?.map(({ id }: { id: number }) => id)]).toEqual([200, [1]]);
    const sorted = await ask(`/api/v1/${table}?${new URLSearchParams({ sort: name })}`);
    expect([sorted.status, sorted.body.data[0].id]).toEqual([200, 1]);
    const atTable = await ask(`/rest/v1/${table}?${new URLSearchParams({ [JSON.stringify(name)]: `eq.${value}` })}`);
    expect(atTable.body.map(({ id }: { id: number }) => id)).toEqual([1]);
  });

  test("with a type of a schema outside the search path is compared as that type", async () => {
    expect((await ask("/api/v1/nicknames/ADA")).body).toMatchObject({ nickname: "Ada" });
    expect((await ask("/api/v1/nicknames?nickname=ADA&nickname=BOB")).body.data).toHaveLength(2);
    expect((await ask("/rest/v1/nicknames?nickname=in.(ADA,BOB)")).body).toHaveLength(2);
    expect((await ask("/rest/v1/nicknames?nickname=neq.ADA&select=id")).body).toEqual([{ id: 2 }]);
    const [bob] = (await ask("/rest/v1/nicknames?id=eq.2&select=older:elder(id)")).body;
    expect(bob).toEqual({ older: { id: 1 } });
  });

  test("is compared as another type if the caller may not use the schema of its own", async () => {
    for (const [value, ids] of [
      ["Ada", [1]],
      ["ADA", []],
    ] as const) {
      const { status, body } = await ask(`/rest/v1/nicknames?nickname=eq.${value}`, { as: { role: "authenticated" } });
      expect([status, body.map(({ id }: { id: number }) => id)]).toEqual([200, ids]);
    }
  });

  test.each(["pattern", "search"])(
    "with a type that Postgres cannot compare, things.%s, can be neither",
    async (name) => {
      for (const [query, field] of [
        [{ [name]: "a" }, name],
        [{ sort: name }, "sort"],
      ] as const) {
        const { status, body } = await ask(`/api/v1/things?${new URLSearchParams(query)}`);
        expect([status, body.error?.details[0].field]).toEqual([400, field]);
      }
    },
  );

  test("with the name * can be selected, and does not select all fields", async () => {
    expect((await ask("/api/v1/stars")).text).toContain('[{"id":1,"*":"star","other":"other"}]');
    expect((await ask("/api/v1/stars?fields=*")).body.data).toEqual([{ "*": "star" }]);
    expect((await ask('/rest/v1/stars?select="*",id')).body).toEqual([{ "*": "star", id: 1 }]);
    expect((await ask("/rest/v1/stars?select=*")).body).toEqual([{ id: 1, "*": "star", other: "other" }]);
  });
});

test("refuses text that its domain's function cannot parse, and null characters", async () => {
  const { status, body } = await ask("/api/v1/paints/%230000ff", { method: "PATCH", body: { label: "navy", id: "x" } });
  expect([status, body.error.details[0].field]).toEqual([400, "id"]);
  expect((await ask("/api/v1/paints?shade=%00")).status).toBe(400);
  expect((await ask("/api/v1/paints/%00")).status).toBe(400);
});
