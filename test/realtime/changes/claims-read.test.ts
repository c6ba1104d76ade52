import pg from "pg";
import { afterAll, beforeAll, expect, test } from "vitest";
import { loadCatalog } from "../../../engine/catalog/load.ts";
import { claimsKey, makeClaimsReader } from "../../../realtime/changes/claims-read.ts";
import { cloneDatabase, type TestDatabase } from "../../database.ts";

let database: TestDatabase;
let client: pg.Client;

beforeAll(async () => {
  database = await cloneDatabase("content");
  client = new pg.Client({ connectionString: database.ownerUrl });
  await client.connect();
  await client.query(`
    create table public.plain (team int);
    create table public.bound (team int);
    alter table public.bound enable row level security;
    create function public.level() returns int language sql stable return (auth.jwt() ->> 'level')::int;
    create function public.opaque() returns int language plpgsql stable as 'begin return 1; end';
    create function public.steady(int) returns int language plpgsql immutable as 'begin return 1; end'`);
});
afterAll(async () => {
  await client.end();
  await database.drop();
});

test.each([
  ["true", []],
  ["id > 5", []],
  ["current_setting('app.users_access') = 'open'", []],
  ["public.steady(id) = 1", []],
  ["exists (select from public.plain where team = t.id)", []],
  ["id = (select auth.uid())", ["sub"]],
  ["owner = (select auth.jwt() ->> 'sub') and level > (auth.jwt() -> 'level')::int", ["level", "sub"]],
  ["owner = current_setting('request.jwt.claims', true)::json ->> 'email'", ["email"]],
  ["owner = nullif(current_setting('request.jwt.claims', true), '')::jsonb ->> 'email'", ["email"]],
  ["public.level() > 1", ["level"]],
  ["(select auth.role()) = 'admin'", []],
  ["auth.jwt() = '{}'", "all"],
  ["(auth.jwt() #>> '{app,team}') = owner", "all"],
  ["current_setting('request.' || 'jwt.claims') = ''", "all"],
  ["public.opaque() = 1", "all"],
  ["exists (select from public.bound where team = t.id)", "all"],
] as const)("a policy that says %s depends on the claims %j", async (using, expected) => {
  await client.query(`drop table if exists public.t; create table public.t (id int, owner text, level int);
    alter table public.t enable row level security; create policy p on public.t for select using (${using});
    create policy writes on public.t for insert with check (owner = (select auth.jwt() ->> 'unread'))`);
  const { catalog } = await loadCatalog(client, {
    schemas: ["public"],
    extraSearchPath: [],
    loginRole: "authenticator",
  });
  const read = await makeClaimsReader((work) => work(client)).read(catalog.findTable({ schema: "public", name: "t" })!);
  expect(read === "all" ? read : [...read].sort()).toEqual(expected);
});

test("two callers see the same where the claims that are read are the same", () => {
  const caller = (claims: object) =>
    ({ kind: "known", role: "authenticated", claims, claimsText: JSON.stringify(claims), expiresAt: null }) as never;
  const [one, again, other] = [
    { sub: "1", iat: 1 },
    { sub: "1", iat: 2 },
    { sub: "2", iat: 1 },
  ].map(caller);
  const read = new Set(["sub"]);
  expect(claimsKey(one!, read)).toBe(claimsKey(again!, read));
  expect(claimsKey(one!, read)).not.toBe(claimsKey(other!, read));
  expect(claimsKey(one!, "all")).not.toBe(claimsKey(again!, "all"));
  expect(claimsKey(one!, new Set())).toBe(claimsKey(other!, new Set()));
});
