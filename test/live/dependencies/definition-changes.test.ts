import { afterAll, describe, expect, test } from "vitest";
import { DefinitionWatch } from "../../../live/dependencies/definition-changes.ts";
import { readQueryDependencies } from "../../../live/dependencies/read-query-dependencies.ts";
import { useClient, useDatabase } from "../../database.ts";

const database = useDatabase({
  template: "empty",
  sql: `
    create table public.films (id int primary key, title text, director int);
    create table public.directors (id int primary key, name text);
    create table public.parts (id int primary key) partition by range (id);
    create table public.shelves (id int primary key, inside int constraint shelf_inside references public.shelves);
    create view public.titles as select title from public.films;
    create function public.own_title(int) returns text stable begin atomic select title from public.films where id = $1; end;
    create function public.text_title(wanted int) returns text language sql stable as
      'select title from public.films where id = wanted and length(title) > 0';
    create publication followed for table public.films, public.directors, public.shelves`,
});
const client = useClient(database.ownerUrl);
const other = useClient(database.ownerUrl);

afterAll(() => client.query("drop role if exists reader_of_all, reader_of_some"));

const QUERIES = {
  films: "select title from public.films",
  directors: "select name from public.directors",
  parts: "select id from public.parts",
  shelves: "select id from public.shelves",
  titles: "select title from public.titles",
  atomic: "select public.own_title(1)",
  text: "select public.text_title(1)",
  unknown: "select public.cursed()",
} as const;
const FILMS = ["films", "titles", "atomic", "text"];
const ALL = Object.keys(QUERIES).filter((name) => name !== "unknown");

const NOTHING = { relations: [], deciding: { relations: [], functions: [] }, obstacles: [], texts: [] };

async function affectedBy(definitions: string, before = "select 1"): Promise<string[]> {
  await client.query(`begin; ${before}; commit`);
  const asOwner = <Result>(work: (of: typeof client) => Promise<Result>) => work(client);
  const watch = new DefinitionWatch(asOwner);
  await watch.begin();
  const names = Object.keys(QUERIES).filter((name) => name !== "unknown" || before.includes("cursed"));
  const read = [];
  for (const name of names as (keyof typeof QUERIES)[]) {
    const statement = { text: QUERIES[name], role: "authenticated", searchPath: "public" };
    read.push({ name, dependencies: await readQueryDependencies(asOwner, statement, "followed") });
  }
  await client.query(`begin; ${definitions}`);
  const changes = await watch.readChanges();
  await client.query("commit");
  return read.filter(({ dependencies }) => changes.affect(dependencies)).map(({ name }) => name);
}

/** Tests of other databases of the server cannot change roles in the meantime. */
async function affectedAlone(definitions: string, before?: string): Promise<string[]> {
  await other.query(`begin;
    lock table pg_catalog.pg_authid, pg_catalog.pg_auth_members, pg_catalog.pg_db_role_setting in share mode`);
  try {
    return await affectedBy(definitions, before);
  } finally {
    await other.query("rollback");
  }
}

describe("a change of definitions affects the queries that name what it changes", () => {
  test.each<readonly [definitions: string, affected: readonly string[]]>([
    ["select 1", []],
    ["create table public.others (id int primary key)", []],
    ["create index on public.directors (name)", ["directors"]],
    ["comment on table public.directors is 'people'", ["directors"]],
    ["comment on column public.directors.name is 'of a person'", ["directors"]],
    ["alter table public.films add column year int", FILMS],
    ["alter table public.films alter column title set default ''", FILMS],
    ["alter table public.films rename column director to made_by", FILMS],
    ["alter table public.films enable row level security", FILMS],
    ["create policy of_all on public.films using (true)", FILMS],
    ["alter policy of_all on public.films using (id > 0)", FILMS],
    ["drop policy of_all on public.films", FILMS],
    ["grant select (title) on public.films to public", FILMS],
    ["grant select on public.directors to public", ["directors"]],
    [
      "alter table public.films add constraint directed foreign key (made_by) references public.directors",
      [...FILMS, "directors"].sort(),
    ],
    ["alter table public.shelves rename constraint shelf_inside to inside_shelf", ["shelves"]],
    ["create table public.part partition of public.parts for values from (0) to (9)", ["parts"]],
    ["alter table public.parts detach partition public.part", ["parts"]],
    ["create or replace view public.titles as select title from public.films where id > 1", ["titles"]],
    [
      "alter table public.directors rename to people; create table public.directors (id int primary key, name text); alter publication followed add table public.directors",
      ["directors"],
    ],
    [
      "create or replace function public.own_title(int) returns text stable begin atomic select title from public.films; end",
      ["atomic"],
    ],
    ["create function public.own_title(text) returns text return $1", ["atomic"]],
    [
      "create or replace function public.text_title(wanted int) returns text language sql stable as 'select title from films where length(title) > 1'",
      ["text"],
    ],
    ["create function public.other() returns int return 1", []],
  ])("%s", async (definitions, affected) => {
    expect((await affectedAlone(definitions)).sort()).toEqual([...affected].sort());
  });

  test.each([
    ["a function whose name a text has", "create function public.length(nearer.label) returns int return 1"],
    ["a table whose name a text has", "create table nearer.films (id int)"],
  ])("%s", async (_what, definitions) => {
    const before =
      "drop schema if exists nearer cascade; create schema nearer; create type nearer.label as (text text)";
    const affected = await affectedAlone(definitions, before);
    expect(affected).toContain("text");
  });

  test("whatever changes, a query whose reads are unknown", async () => {
    const before = "create function public.cursed() returns int language plpgsql stable as 'begin execute ''x''; end'";
    expect(await affectedAlone("create table public.unrelated (id int)", before)).toEqual(["unknown"]);
  });

  test("a table that is no longer published", async () => {
    const affected = await affectedAlone("alter publication followed drop table public.directors");
    expect(affected).toEqual(["directors"]);
  });
});

test.each([
  "create type public.mood as enum ('good')",
  "alter type public.mood add value 'bad'",
  "create domain public.age as int check (value > 0)",
  "create operator public.=== (leftarg = text, rightarg = text, function = texteq)",
  "create cast (public.mood as jsonb) with inout",
  "create schema further",
  "create role reader_of_all; create role reader_of_some",
  "grant reader_of_all to reader_of_some",
  "alter role reader_of_all set search_path = further",
  "alter publication followed set (publish = 'insert')",
  `create table public."of ""all""" (id int)`,
  `create table public.${"long".repeat(16)} (id int)`,
])("%s affects all queries", async (definitions) => {
  expect((await affectedBy(definitions)).sort()).toEqual([...ALL].sort());
});

test("all queries are affected where the definitions cannot be read", async () => {
  let isDown = false;
  const watch = new DefinitionWatch((work) => (isDown ? Promise.reject(new Error("down")) : work(client)));
  await watch.begin();
  isDown = true;
  const changes = await watch.readChanges();
  expect(changes.affect(NOTHING)).toBe(true);
});
