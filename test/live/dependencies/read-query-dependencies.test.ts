import { expect, test } from "vitest";
import { readQueryDependencies } from "../../../live/dependencies/read-query-dependencies.ts";
import { useClient, useDatabase } from "../../database.ts";

const database = useDatabase({
  sql: `
    create table public.films (id int primary key, title text);
    create extension fuzzystrmatch schema public;
    create function public.own(text, text) returns int language c immutable strict as '$libdir/fuzzystrmatch', 'levenshtein'`,
});
const client = useClient(database.ownerUrl);

test.each([
  ["current_setting ('request.headers', true)", true, new Set()],
  [`"current_setting"('request.headers', true)`, true, new Set()],
  ["current_setting('request.jwt.claims', true)", false, "all"],
  ["current_setting('request.jwt.claims', true)::json ->> 'email'", false, new Set(["email"])],
  ["current_setting('request.jwt.claim.sub', true)", false, new Set(["sub"])],
])(
  "%s in a text that Postgres has not parsed, in both languages, reads something of the single request: %s, and these claims",
  async (call, readsRequest, claims) => {
    for (const [language, body] of [
      ["sql", `select ${call}`],
      ["plpgsql", `begin return ${call}; end`],
      ["plpgsql", `declare tenant text := ${call}; begin return tenant; end`],
      ["plpgsql", `begin if 'staff' = ${call} then return 'staff'; end if; return null; end`],
    ] as const) {
      const read = await readTenant(language, body);
      expect({ body, readsRequest: read.readsRequest, claims: read.claims }).toEqual({ body, readsRequest, claims });
    }
  },
);

test("a function in PL/pgSQL that keeps all claims in a variable reads all", async () => {
  const claims = "current_setting('request.jwt.claims', true)::jsonb";
  const read = await readTenant("plpgsql", `declare claims jsonb := ${claims}; begin return claims ->> 'sub'; end`);
  expect(read.claims).toBe("all");
});

async function readTenant(language: "sql" | "plpgsql", body: string) {
  await client.query(
    `create or replace function public.tenant() returns text language ${language} stable as $$ ${body} $$`,
  );
  const statement = { text: "select public.tenant() from public.films", role: "authenticated", searchPath: "public" };
  return readQueryDependencies((work) => work(client), statement, "missing");
}

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

test.each([
  [
    "in a function in SQL",
    "create function public.clock() returns date language sql stable as $$ select 'today 10:00'::date $$",
    "public.clock()",
  ],
  [
    "in a view",
    "create view public.clock as select ('yesterday'::text)::date as day",
    "(select day from public.clock)",
  ],
])("a word for a time that passes is noticed %s", async (_, definition, expression) => {
  await client.query(`begin; ${definition}`);
  const statement = { text: `select ${expression}`, role: "authenticated", searchPath: "public" };
  await client.query("commit");
  const { obstacles } = await readQueryDependencies((work) => work(client), statement, "missing");
  await client.query("drop routine if exists public.clock; drop view if exists public.clock");
  expect(obstacles).toContain("it depends on the time");
});

test("a text that has such a word is no time", async () => {
  await client.query(`create view public.states as select title = 'today'::text as is_today from public.films;
    create function public.state() returns text language sql stable as $$ select 'known now as'::text $$`);
  const statement = {
    text: "select is_today, public.state() from public.states",
    role: "authenticated",
    searchPath: "public",
  };
  const { obstacles } = await readQueryDependencies((work) => work(client), statement, "missing");
  await client.query("drop view public.states; drop function public.state");
  expect(obstacles).not.toContain("it depends on the time");
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

test.each([
  ["sql", "select tenant = caller"],
  ["plpgsql", "begin return tenant = caller; end"],
])("the default of an argument is read with the function, in %s", async (language, body) => {
  const claim = "current_setting('request.jwt.claims', true)::json ->> 'tenant'";
  for (const [given, read] of [
    [claim, { claims: new Set(["tenant"]), readsRequest: false }],
    ["current_setting('request.headers', true)", { claims: new Set(), readsRequest: true }],
  ] as const) {
    await client.query(`create function public.is_mine(tenant text, caller text default ${given}) returns bool
      language ${language} stable as $body$ ${body} $body$`);
    const statement = { text: "select public.is_mine('a')", role: "authenticated", searchPath: "public" };
    const { claims, readsRequest } = await readQueryDependencies((work) => work(client), statement, "missing");
    await client.query("drop function public.is_mine");
    expect({ claims, readsRequest }).toEqual(read);
  }
});

test("a comment ends with a carriage return, as in Postgres", async () => {
  const body = "begin\n-- who\rreturn current_setting('request.jwt.claims', true)::json ->> 'sub';\nend";
  expect((await readTenant("plpgsql", body)).claims).toEqual(new Set(["sub"]));
});

test("a function in C depends on no claims if it is an extension's, and may depend on all if it is not", async () => {
  expect(await claimsOf("select public.levenshtein(title, 'x') from public.films")).toEqual(new Set());
  expect(await claimsOf("select public.own(title, 'x') from public.films")).toBe("all");
});

/** A table that the reads below need not name in the text of the function that they are in. */
const HIDDEN_READS = `
  create table public.bans (person text primary key);
  create table public.members (id int primary key, person text);
  create table public.limits (id int primary key, value int);
  create function public.is_banned(public.members) returns boolean language sql stable
    as 'select exists (select from public.bans b where b.person = $1.person)';
  create function public.above_limit(int, int) returns boolean language plpgsql stable
    as 'begin return $1 > (select value from public.limits) + $2; end';
  create operator public.@@@ (leftarg = int, rightarg = int, function = public.above_limit);
  create type public.badge as (number int);
  create function public.badge_value(public.badge) returns int language sql stable
    as 'select $1.number + (select count(*)::int from public.limits)';
  create cast (public.badge as int) with function public.badge_value(public.badge) as assignment;
  create function public.with_default(int, bound int default (public.badge_value(row(1)::public.badge))) returns boolean
    language sql stable as 'select $1 > $2';
  create sequence public.numbers`;

const obstaclesOfBody = async (language: string, body: string) => {
  await client.query("begin");
  await client.query(
    `create function public.generated(k int) returns boolean language ${language} stable as $body$ ${body} $body$`,
  );
  await client.query("commit");
  const statement = { text: "select public.generated(1)", role: "authenticated", searchPath: "public" };
  const read = await readQueryDependencies((work) => work(client), statement, "missing");
  await client.query("drop function public.generated");
  const { rows } = await client.query<{ name: string }>(
    "select relname as name from pg_class where oid = any($1::oid[]) order by 1",
    [read.relations.map(({ oid }) => oid)],
  );
  return { tables: rows.map(({ name }) => name), obstacles: read.obstacles };
};

test.each([
  ["exists (select from public.members m where m.is_banned)", ["bans", "members"]],
  ["(select m.is_banned from public.members m limit 1)", ["bans", "members"]],
  ["k operator(public.@@@) 1", ["limits"]],
  ["k @@@ 1", ["limits"]],
  ["row(k)::public.badge::int > 3", ["limits"]],
  ["with_default(k)", ["limits"]],
  ["exists (select from public/* a */. -- b\n bans)", ["bans"]],
  [`exists (select from U&"p\\0075blic" . U&"b\\0061ns")`, ["bans"]],
  ["exists (table bans)", ["bans"]],
])("what %s reads in a text is known, in both languages", async (expression, tables) => {
  await client.query(`begin; ${HIDDEN_READS}`);
  await client.query("commit");
  try {
    for (const [language, body] of [
      ["sql", `select ${expression} -- the end`],
      ["plpgsql", `declare found_one boolean := ${expression}; begin return found_one; end`],
      ["plpgsql", `begin if ${expression} then return true; end if; return false; end`],
    ] as const)
      expect((await obstaclesOfBody(language, body)).tables).toEqual(tables);
  } finally {
    await client.query(DROP_HIDDEN_READS);
  }
});

const JSON_CASTS = `
  create table public.limits (id int primary key, value int);
  create type public.badge as (number int);
  create function public.badge_json(public.badge) returns json language sql stable
    as 'select to_json($1.number + (select count(*) from public.limits))';
  create cast (public.badge as json) with function public.badge_json(public.badge);
  create type public.holder as (name text, badges public.badge[]);
  create domain public.holders as public.holder[];
  create domain public.badge_list as public.badge[]`;

test.each([
  ["public.badge", true],
  ["public.badge[]", true],
  ["public.badge_list", true],
  ["public.holder", true],
  ["public.holder[]", true],
  ["public.holders", true],
  ["text[]", false],
])("what a cast to JSON reads is known, where values of the type %s become JSON", async (type, isRead) => {
  await client.query(`begin; ${JSON_CASTS}; create table public.cards (id int primary key, of_type ${type});
    create function public.card(int) returns public.cards language sql stable as 'select c from public.cards c where c.id = $1'`);
  await client.query("commit");
  try {
    const { rows } = await client.query<{ oid: number }>("select 'public.limits'::regclass::oid as oid");
    for (const text of [
      "select to_json(of_type) from public.cards",
      "select json_agg(c) from public.cards c",
      "select to_jsonb(public.card(1))",
    ]) {
      const statement = { text, role: "authenticated", searchPath: "public" };
      const { relations } = await readQueryDependencies((work) => work(client), statement, "missing");
      expect([text, relations.some(({ oid }) => Number(oid) === rows[0]!.oid)]).toEqual([text, isRead]);
    }
  } finally {
    await client.query("drop table public.limits, public.cards cascade; drop type public.badge, public.holder cascade");
  }
});

const DROP_HIDDEN_READS = `drop table public.bans, public.members, public.limits cascade; drop type public.badge cascade;
  drop operator public.@@@ (int, int); drop function public.above_limit; drop sequence public.numbers; drop function if exists public.with_default`;

test.each([
  ["sql", "select (select last_value from public.numbers) > k", "it reads a sequence"],
  ["sql", "select currval('public.numbers') > k", "it reads a sequence"],
  ["sql", "select exists (select from pg_stat_activity)", "it reads a system catalog"],
  ["sql", "select exists (select from pg_class where relname = 'x')", "it reads a system catalog"],
  ["sql", "select pg_stat_get_backend_pid(k) is null", "the stream may not have what pg_stat_get_backend_pid"],
  [
    "sql",
    "select table_to_xml('public.numbers', true, false, '') is null",
    "the stream may not have what table_to_xml",
  ],
  ["sql", "select random() > k", "it calls a volatile function of Postgres"],
  ["sql", "select exists (select from public.numbers tablesample system (50))", "is unknown"],
  ["plpgsql", "begin execute 'select 1'; return true; end", "runs SQL that it composes"],
  ["plpgsql", "declare c cursor for select 1; begin open c; return true; end", "is unknown"],
  ["sql", "select 1 > k; end; select true", "is unknown"],
])("in %s, %s is an obstacle", async (language, body, reason) => {
  await client.query("set check_function_bodies = off; create sequence public.numbers");
  try {
    expect((await obstaclesOfBody(language, body)).obstacles.join()).toContain(reason);
  } finally {
    await client.query("reset check_function_bodies; drop sequence public.numbers");
  }
});
