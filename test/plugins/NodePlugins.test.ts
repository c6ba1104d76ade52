import { expect, test } from "vitest";
import { useFixture } from "../fixture.ts";
import { serveGraphQL, tokenFor } from "../graphql.ts";

const TABLES = `
  create table public.books (id int primary key, title text);
  create table public.places (x int, day date, name text, primary key (x, day));
  create table public.nodes (id int primary key, node_id int, label text);
  create table public.halves (id int primary key, shown text);
  create table public.secrets (id int primary key, word text);
  create table public.own (id int primary key, word text);
  create table public.works (id int primary key, kind text not null, title text, minutes int, parts int);
  comment on table public.works is e'@interface mode:single type:kind\\n@type film name:Film attributes:minutes\\n@type series name:Series attributes:parts';
  create table public.marks (id int primary key, "constructor" text, "toString" text);
  create view public.titles as select title from public.books;
  alter table public.own enable row level security;
  create policy one on public.own using (id = 1);
  insert into public.books values (1, 'One'), (2, 'Two');
  insert into public.places values (1, '2026-01-02', 'Here');
  insert into public.works values (1, 'film', 'A film', 90, null), (2, 'series', 'A series', null, 8);
  insert into public.marks values (1, 'a', 'b');
  insert into public.nodes values (1, 5, 'a');
  insert into public.halves values (1, 'b');
  insert into public.secrets values (1, 'hidden');
  insert into public.own values (1, 'a'), (2, 'b');
  grant select on public.books, public.places, public.nodes, public.own, public.titles, public.works, public.marks to anon, authenticated;
  grant select (shown) on public.halves to authenticated;
  grant select on public.halves, public.secrets to anon;
  grant insert on public.books to anon`;

const graphql = useFixture(() =>
  serveGraphQL({ template: "empty", before: TABLES, settings: { GRAPHQL_NODE: "true" } }),
);
const without = useFixture(() => serveGraphQL({ database: graphql.database }));

const idOf = (...parts: unknown[]) => Buffer.from(JSON.stringify(parts)).toString("base64");
const read = async (nodeId: string, token?: string) => {
  const query = `query ($nodeId: ID!) { node(nodeId: $nodeId) { __typename nodeId ... on Book { id title } ... on Place { name } ... on Own { word } } }`;
  return graphql.ask(query, { variables: { nodeId }, ...(token && { token }) });
};
const typesOf = async (token?: string) => {
  const query = `{ __type(name: "Node") { possibleTypes { name } } }`;
  const { data } = await graphql.ask(query, { ...(token && { token }) });
  return data.__type.possibleTypes.map(({ name }: { name: string }) => name).sort();
};

test("rows have a global id beside their own, which node reads", async () => {
  const { data, errors } = await graphql.ask(
    "{ book(id: 1) { id nodeId } places(first: 1) { edges { node { nodeId name } } } }",
  );
  expect(errors).toBeUndefined();
  const [book, place] = [idOf("Book", "1"), idOf("Place", 1, "2026-01-02")];
  expect(data).toEqual({
    book: { id: "1", nodeId: book },
    places: { edges: [{ node: { nodeId: place, name: "Here" } }] },
  });
  expect((await read(book)).data).toEqual({ node: { __typename: "Book", nodeId: book, id: "1", title: "One" } });
  expect((await read(place)).data).toEqual({ node: { __typename: "Place", nodeId: place, name: "Here" } });
  const made = await graphql.ask('mutation { createBook(input: { id: 3, title: "Three" }) { nodeId } }');
  expect(made.data).toEqual({ createBook: { nodeId: idOf("Book", "3") } });
});

test("rows of a table that several types share have the id of their own type", async () => {
  const { data, errors } = await graphql.ask(
    "{ works { edges { node { __typename nodeId ... on Film { minutes } } } } }",
  );
  const [film, series] = [idOf("Film", "1"), idOf("Series", "2")];
  expect([errors, data.works.edges]).toEqual([
    undefined,
    [{ node: { __typename: "Film", nodeId: film, minutes: 90 } }, { node: { __typename: "Series", nodeId: series } }],
  ]);
  expect((await read(film)).data).toEqual({ node: { __typename: "Film", nodeId: film } });
  expect((await read(series)).data).toEqual({ node: { __typename: "Series", nodeId: series } });
  expect((await read(idOf("Film", "2"))).data).toEqual({ node: null });
});

test("an id of no row, of a row that policies hide, or that cannot be read, is null", async () => {
  expect((await read(idOf("Own", "1"))).data).toMatchObject({ node: { word: "a" } });
  for (const id of [idOf("Book", "99"), idOf("Own", "2"), idOf("Nothing", "1"), idOf("Book"), "x", ""]) {
    const { data, errors } = await read(id);
    expect([id, data, errors]).toEqual([id, { node: null }, undefined]);
  }
});

const CLIENT_ERRORS = ["BAD_USER_INPUT", "VALIDATION_ERROR"];

test("an id with a value that the key cannot have is null or a client's error", async () => {
  const ids = [
    ["Book", {}],
    ["Book", null],
    ["Book", true],
    ["Book", "x"],
    ["Book", "1", 2],
  ];
  for (const id of [
    ...ids,
    ["Place", "1", "never"],
    ["Place", 1],
    [],
    {},
    [null],
    [["Book"], "1"],
    [{ toString: 1 }, "1"],
  ]) {
    const { data, errors } = await read(Buffer.from(JSON.stringify(id)).toString("base64"));
    const codes = (errors ?? []).map(({ extensions }: { extensions: { code: string } }) => extensions.code);
    expect([id, codes.filter((code: string) => !CLIENT_ERRORS.includes(code))]).toEqual([id, []]);
    if (!Array.isArray(id) || id[1] !== "1") expect([id, data?.node ?? null]).toEqual([id, null]);
  }
});

test("a role has the types whose key it may select", async () => {
  const token = tokenFor(1);
  expect(await typesOf()).toEqual(["Book", "Film", "Half", "Mark", "NodeRecord", "Own", "Place", "Secret", "Series"]);
  expect(await typesOf(token)).toEqual(["Book", "Film", "Mark", "NodeRecord", "Own", "Place", "Series"]);
  for (const id of [idOf("Secret", "1"), idOf("Half", "1")]) {
    expect((await read(id)).data.node.nodeId).toBe(id);
    const { data, errors } = await read(id, token);
    expect([data, errors]).toEqual([{ node: null }, undefined]);
  }
  const half = await graphql.ask('{ __type(name: "Half") { fields { name } interfaces { name } } }', { token });
  expect(half.data).toEqual({ __type: { fields: [{ name: "shown" }], interfaces: [] } });
});

test("columns with the names of methods of objects are fields beside the id", async () => {
  const { data, errors } = await graphql.ask("{ mark(id: 1) { nodeId constructor toString } }");
  expect([errors, data]).toEqual([undefined, { mark: { nodeId: idOf("Mark", "1"), constructor: "a", toString: "b" } }]);
});

test("objects of the database with the names of Relay's get others, and none without the setting", async () => {
  const { data, errors } = await graphql.ask("{ nodeRecord(id: 1) { nodeId nodeId_ label } }");
  expect([errors, data]).toEqual([
    undefined,
    { nodeRecord: { nodeId: idOf("NodeRecord", "1"), nodeId_: "5", label: "a" } },
  ]);
  expect((await without.ask("{ node(id: 1) { nodeId label } }")).data).toMatchObject({ node: { label: "a" } });
  expect((await without.ask("{ book(id: 1) { nodeId } }")).errors).toHaveLength(1);
});
