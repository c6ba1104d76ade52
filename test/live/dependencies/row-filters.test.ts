import { afterAll, afterEach, expect, test } from "vitest";
import { readQueryDependencies } from "../../../live/dependencies/read-query-dependencies.ts";
import { useClient, useDatabase } from "../../database.ts";

const database = useDatabase({
  sql: `
    create role filter_reader; create role filter_writer; create role filter_owner bypassrls;
    create table public.members (person text, room int, account bigint, tag text collate "und-x-icu", primary key (person, room));
    create table public.notes (id int primary key, room int, owner text, team uuid, "Account" bigint);
    alter table public.notes enable row level security;
    create table public.guests (room int, person varchar(40)) partition by hash (room);
    create table public.guests_0 partition of public.guests for values with (modulus 1, remainder 0);
    create function public.team() returns uuid language sql stable return (auth.jwt() ->> 'team')::uuid;
    create function public.text_team() returns uuid language sql stable as 'select (auth.jwt() ->> ''team'')::uuid';
    create function public.newest_team() returns uuid language sql stable return (select team from public.notes order by id desc limit 1);
    create function public.is_member(wanted int) returns boolean language sql stable security definer
      begin atomic select exists (select from public.members m where m.room = wanted and m.person = auth.jwt() ->> 'sub'); end;
    create view public.rooms as select distinct room from public.members where account = auth.uid()`,
});
const client = useClient(database.ownerUrl);
afterEach(async () => {
  const { rows } = await client.query<{ policy: string }>(
    "select pg_catalog.format('drop policy %I on %s', polname, polrelid::regclass) as policy from pg_policy where polrelid = 'public.notes'::regclass",
  );
  for (const { policy } of rows) await client.query(policy);
});
afterAll(() => client.query("drop role filter_reader, filter_writer, filter_owner"));

async function filtersOf(policies: readonly string[], text = "select id from public.notes", role = "filter_reader") {
  for (const [index, policy] of policies.entries()) {
    const kind = policy.startsWith("to ") || policy.startsWith("as ") ? policy : `for select ${policy}`;
    await client.query(`create policy p${index} on public.notes ${kind}`);
  }
  const statement = { text, role, searchPath: "public" };
  const { rowFilters } = await readQueryDependencies((work) => work(client), statement, "missing");
  const { rows } = await client.query<{ oid: number; name: string }>(
    "select oid::int8::int4 as oid, relname::text as name from pg_class where oid = any($1)",
    [rowFilters.map(({ relation }) => relation)],
  );
  const nameOf = (relation: number) => rows.find(({ oid }) => oid === relation)!.name;
  return rowFilters.map(({ relation, column, isExact, expressions }) => [
    `${nameOf(relation)}.${column}${isExact ? " exactly" : ""}`,
    // Postgres puts the policies of a table in no order.
    ...expressions.toSorted(),
  ]);
}

const SUB = "((auth.jwt()) operator(pg_catalog.->>) 'sub')";
const OWN_MEMBERSHIP = ["members.person exactly", SUB];

test.each<[string, string, string[][]]>([
  ["a claim", "using (owner = auth.jwt() ->> 'sub')", [["notes.owner exactly", SUB]]],
  ["a claim in a subselect", "using ((select auth.jwt() ->> 'sub') = owner)", [["notes.owner exactly", SUB]]],
  ["a function of claims", "using (team = public.team())", [["notes.team", "public.team()"]]],
  ["a quoted column", `using ("Account" = (select auth.uid()))`, [["notes.Account", "auth.uid()"]]],
  [
    "a claim that is cast",
    "using (room = (auth.jwt() ->> 'room''s')::int)",
    [["notes.room", "(((auth.jwt()) operator(pg_catalog.->>) 'room''s'))::pg_catalog.int4"]],
  ],
  [
    "a claim of the setting",
    "using (owner = current_setting('request.jwt.claims', true)::json ->> 'sub')",
    [
      [
        "notes.owner exactly",
        "(((pg_catalog.current_setting('request.jwt.claims', true))::pg_catalog.json) operator(pg_catalog.->>) 'sub')",
      ],
    ],
  ],
  [
    "a claim and more",
    "using (id > 3 and (owner = auth.jwt() ->> 'sub' and room = 1))",
    [["notes.owner exactly", SUB]],
  ],
  ["a claim or more", "using (id > 3 or owner = auth.jwt() ->> 'sub')", []],
  ["not a claim", "using (not owner = auth.jwt() ->> 'sub')", []],
  ["another operator", "using (owner < auth.jwt() ->> 'sub')", []],
  [
    "a collation that may hold different texts for equal",
    `using (owner = (auth.jwt() ->> 'sub') collate "und-x-icu")`,
    [],
  ],
  ["a function of rows", "using (team = public.newest_team())", []],
  ["a function whose text is not parsed", "using (team = public.text_team())", []],
  ["another column", "using (owner = room::text)", []],
  [
    "members, in",
    "using (room in (select m.room from public.members m where m.person = auth.jwt() ->> 'sub'))",
    [OWN_MEMBERSHIP],
  ],
  [
    "members, exists",
    "using (exists (select from public.members m where m.room = notes.room and (select auth.jwt() ->> 'sub') = m.person))",
    [OWN_MEMBERSHIP],
  ],
  [
    "members, on the other side of an outer join",
    "using (exists (select from (values (1)) v (n) left join public.members m on m.room = v.n where m.person = auth.jwt() ->> 'sub'))",
    [OWN_MEMBERSHIP],
  ],
  [
    "members by a condition of an outer join",
    "using (exists (select from (values (1)) v (n) left join public.members m on m.person = auth.jwt() ->> 'sub'))",
    [],
  ],
  ["members, in a function", "using (public.is_member(room))", [OWN_MEMBERSHIP]],
  ["members, in a view", "using (room in (select r.room from public.rooms r))", [["members.account", "auth.uid()"]]],
  [
    "members, twice",
    "using (public.is_member(room) or exists (select from public.members where members.person = auth.jwt() ->> 'sub'))",
    [],
  ],
  [
    "members of a column of another query",
    "using (exists (select from public.members m where m.person = notes.owner))",
    [],
  ],
  [
    "a column of the outer query beside members",
    "using (exists (select from public.members m where notes.owner = auth.jwt() ->> 'sub'))",
    [],
  ],
  [
    "members by a column whose collation may hold different texts for equal",
    "using (exists (select from public.members m where m.tag = auth.jwt() ->> 'sub'))",
    [],
  ],
  ["partitions", "using (exists (select from public.guests g where g.person = auth.jwt() ->> 'sub'))", []],
])("%s in a policy", async (_what, policy, expected) => {
  expect(await filtersOf([policy])).toEqual(expected);
});

const OWN = "using (owner = auth.jwt() ->> 'sub')";

test("policies that all compare one column give a filter of it", async () => {
  const author = "using (id > 0 and owner = auth.jwt() ->> 'author')";
  expect(await filtersOf([OWN, author])).toEqual([
    ["notes.owner exactly", "((auth.jwt()) operator(pg_catalog.->>) 'author')", SUB],
  ]);
});

test("policies that compare different columns give none", async () => {
  expect(await filtersOf([OWN, "using (team = public.team())"])).toEqual([]);
});

test.each([
  ["a restrictive one", "as restrictive for select using (id > 0)", [["notes.owner exactly", SUB]]],
  ["one for another role", "to filter_writer using (true)", [["notes.owner exactly", SUB]]],
  ["one for this role", "to filter_reader using (true)", []],
  ["one for writes", "as permissive for update using (true)", [["notes.owner exactly", SUB]]],
])("%s beside the policy of a claim", async (_what, other, expected) => {
  expect(await filtersOf([OWN, other])).toEqual(expected);
});

test("a query that reads the table twice has the filter of its policy, which holds for both", async () => {
  const twice = "select a.id from public.notes a join public.notes b using (id)";
  expect(await filtersOf([OWN], twice)).toEqual([["notes.owner exactly", SUB]]);
});

test.each([
  ["bypasses policies", "select id from public.notes", "filter_owner"],
  ["reads it also in a function", "select id from public.notes where team = public.newest_team()", "filter_reader"],
])("a query that %s has no filter by its policy", async (_what, text, role) => {
  expect(await filtersOf([OWN], text, role)).toEqual([]);
});

test("a table that inherits from another has no filter: its rows are read through that one too", async () => {
  await client.query("create table public.contracts (parent int, owner text) inherits (public.notes)");
  const policy =
    "using (exists (select from public.contracts c where c.parent = notes.id and c.owner = auth.jwt() ->> 'sub'))";
  expect(await filtersOf([policy])).toEqual([]);
  await client.query("drop policy p0 on public.notes; drop table public.contracts");
});

test("a policy for writes alone gives no filter, and refuses nothing", async () => {
  expect(await filtersOf(["as permissive for all to filter_reader with check (owner = auth.jwt() ->> 'sub')"])).toEqual(
    [],
  );
});

test.each([
  [
    "that depends on the role",
    "create function public.caller_name() returns text language sql stable return current_user",
  ],
  [
    "that sets claims",
    `create function public.caller_name() returns text language sql stable set "request.jwt.claims" = '{"sub":"a"}' return auth.jwt() ->> 'sub'`,
  ],
])("a function %s gives no filter", async (_what, definition) => {
  await client.query(definition);
  expect(await filtersOf(["using (owner = public.caller_name())"])).toEqual([]);
  await client.query("drop policy p0 on public.notes; drop function public.caller_name()");
});

test("a read in a function that sets claims gives no filter", async () => {
  await client.query(`create function public.is_own(wanted int) returns boolean language sql stable set "request.jwt.claims" = '{"sub":"a"}'
    begin atomic select exists (select from public.members m where m.room = wanted and m.person = auth.jwt() ->> 'sub'); end`);
  expect(await filtersOf(["using (public.is_own(room))"])).toEqual([]);
  await client.query("drop policy p0 on public.notes; drop function public.is_own(int)");
});
