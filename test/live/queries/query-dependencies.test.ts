import pg from "pg";
import { afterAll, beforeAll, expect, test } from "vitest";
import { readQueryDependencies } from "../../../live/queries/query-dependencies.ts";
import { cloneDatabase, type TestDatabase } from "../../database.ts";

let database: TestDatabase;
let client: pg.Client;

beforeAll(async () => {
  database = await cloneDatabase("content");
  client = new pg.Client({ connectionString: database.ownerUrl });
  await client.connect();
  await client.query(`
    create table public.films (id int primary key, title text);
    create extension fuzzystrmatch schema public;
    create function public.own(text, text) returns int language c immutable strict as '$libdir/fuzzystrmatch', 'levenshtein'`);
});
afterAll(async () => {
  await client.end();
  await database.drop();
});

test.each(["current_setting ('request.headers', true)", `"current_setting"('request.headers', true)`])(
  "the headers that %s reads in a text that Postgres has not parsed are noticed",
  async (call) => {
    await client.query(
      `create or replace function public.tenant() returns text language sql stable as $$ select ${call} $$`,
    );
    const statement = { text: "select public.tenant() from public.films", role: "authenticated", searchPath: "public" };
    const read = await readQueryDependencies((work) => work(client), statement, "missing");
    expect(read.readsRequest).toBe(true);
  },
);

test.each([
  ["set search_path = shelf", "", true],
  ["set search_path = ''", "perform set_config('search_path', 'shelf', true);", false],
])(
  "a table that a function finds by the search path of the function that calls it is read, or the query is not live (%s)",
  async (setting, before, isKnown) => {
    await client.query(`
      set check_function_bodies = off;
      create schema shelf; create table shelf.books (id int primary key);
      create function public.count_books() returns bigint language sql stable as 'select count(*) from books';
      create function public.library() returns bigint language plpgsql stable ${setting} as $$
        begin ${before} return public.count_books(); end $$`);
    const { rows } = await client.query<{ oid: number }>("select 'shelf.books'::regclass::oid as oid");
    const statement = { text: "select public.library()", role: "authenticated", searchPath: "public" };
    const read = await readQueryDependencies((work) => work(client), statement, "missing");
    await client.query(
      "reset check_function_bodies; drop function public.library; drop function public.count_books; drop schema shelf cascade",
    );
    if (isKnown) expect(read.relations.map(({ oid }) => Number(oid))).toContain(rows[0]!.oid);
    else expect(read.obstacles.join()).toContain("is unknown: write it in SQL with BEGIN ATOMIC");
  },
);

test("the time that now () is in such a text is noticed, and a column of that name is none", async () => {
  await client.query(
    "create or replace function public.today() returns timestamptz language sql stable as 'select now ()'",
  );
  const obstaclesOf = async (text: string) => {
    const statement = { text, role: "authenticated", searchPath: "public" };
    return (await readQueryDependencies((work) => work(client), statement, "missing")).obstacles;
  };
  expect(await obstaclesOf("select public.today()")).toContain("it depends on the time");
  expect(await obstaclesOf("select id as age, title as now from public.films")).not.toContain("it depends on the time");
});

test("the time in a policy matters to those whose role it is for, and to those who read through a function of that role", async () => {
  await client.query(`
    create role timekeeper; create role deputy;
    create table public.shifts (id int primary key, until timestamptz);
    alter table public.shifts enable row level security;
    create policy of_keepers on public.shifts for select to timekeeper using (until > now());
    create policy of_all on public.shifts for select using (id > 0);
    grant select on public.shifts to authenticated, timekeeper, deputy;
    create function public.shift_count() returns bigint language sql stable security definer begin atomic select count(*) from public.shifts; end;
    alter function public.shift_count owner to deputy`);
  const obstaclesOf = async (text: string, role: string) => {
    const statement = { text, role, searchPath: "public" };
    return (await readQueryDependencies((work) => work(client), statement, "missing")).obstacles;
  };
  const time = "it depends on the time";
  expect(await obstaclesOf("select id from public.shifts", "authenticated")).not.toContain(time);
  expect(await obstaclesOf("select id from public.shifts", "timekeeper")).toContain(time);
  expect(await obstaclesOf("select public.shift_count()", "authenticated")).not.toContain(time);
  await client.query("grant timekeeper to deputy");
  expect(await obstaclesOf("select public.shift_count()", "authenticated")).toContain(time);
  expect(await obstaclesOf("select id from public.shifts", "authenticated")).not.toContain(time);
  await client.query("drop function public.shift_count; drop table public.shifts; drop role deputy, timekeeper");
});

test("a sequence or a system catalog that a view reads is an obstacle, since the stream has no changes of it", async () => {
  await client.query(`
    create sequence public.film_number;
    create view public.last_film as select last_value from public.film_number;
    create view public.sessions as select f.id from public.films f where exists (select from pg_catalog.pg_stat_activity);
    create view public.titles as select title from public.films where pg_catalog.pg_has_role('authenticated', 'usage')`);
  const obstaclesOf = async (view: string) => {
    const statement = { text: `select * from public.${view}`, role: "authenticated", searchPath: "public" };
    return (await readQueryDependencies((work) => work(client), statement, "missing")).obstacles;
  };
  expect(await obstaclesOf("last_film")).toContain("it reads a sequence");
  expect(await obstaclesOf("sessions")).toContain("it reads a system catalog");
  expect((await obstaclesOf("titles")).filter((obstacle) => obstacle.startsWith("it reads"))).toEqual([]);
});

const claimsOf = async (text: string) => {
  const statement = { text, role: "authenticated", searchPath: "public" };
  return (await readQueryDependencies((work) => work(client), statement, "missing")).claims;
};

test("a function in C depends on no claims if it is an extension's, and may depend on all if it is not", async () => {
  expect(await claimsOf("select public.levenshtein(title, 'x') from public.films")).toEqual(new Set());
  expect(await claimsOf("select public.own(title, 'x') from public.films")).toBe("all");
});
