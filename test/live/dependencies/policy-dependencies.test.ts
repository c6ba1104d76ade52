import { expect, test } from "vitest";
import type { Caller } from "../../../accounts/identity/caller.ts";
import type { Claims } from "../../../accounts/identity/claims.ts";
import { applicablePolicies } from "../../../catalog/access.ts";
import { loadCatalog } from "../../../catalog/load-catalog.ts";
import {
  claimsKey,
  makePolicyClaimsReader,
  type PolicyClaims,
} from "../../../live/dependencies/policy-dependencies.ts";
import { useClient, useDatabase } from "../../database.ts";

const database = useDatabase({
  sql: `
    create table public.plain (team int);
    create table public.bound (team int);
    alter table public.bound enable row level security;
    create function public.level() returns int language sql stable return (auth.jwt() ->> 'level')::int;
    create function public.opaque() returns int language plpgsql stable as 'begin return 1; end';
    create function public.immutable(int) returns int language plpgsql immutable as 'begin return 1; end';
    create extension citext schema public;
    create domain public.name as text check (value <> '');
    create domain public.own_name as text check (value <> coalesce(auth.jwt() ->> 'name', ''));
    create domain public.names as public.own_name[];
    create schema other;
    create function other.jwt() returns jsonb language sql stable return '{"sub": "1"}'::jsonb;
    create function other.claims() returns json language sql stable
      return current_setting('request.jwt.claims', true)::json;
    create function other.altered() returns jsonb language sql stable set "request.jwt.claims" = '{}'
      return current_setting('request.jwt.claims', true)::jsonb;
    create view public.seen as select * from public.bound;
    create function public.own_eq(int, int) returns bool language sql return $1 = $2 and auth.jwt() ->> 'by' = 'x';
    create operator public.=== (leftarg = int, rightarg = int, function = public.own_eq);
    create function public.is_mine(text, caller text default auth.jwt() ->> 'tenant') returns bool language sql stable return $1 = caller;
    create operator public.## (rightarg = text, function = pg_catalog.current_setting);
    create aggregate public.total(int) (sfunc = int4pl, stype = int, initcond = '0')`,
});
const client = useClient(database.ownerUrl);

async function claimsReadBy(using: string): Promise<PolicyClaims> {
  await client.query(`drop table if exists public.t; create table public.t (id int, owner text, level int);
    alter table public.t enable row level security; create policy p on public.t for select using (${using});
    create policy writes on public.t for insert with check (owner = (select auth.jwt() ->> 'unread'))`);
  const { catalog } = await loadCatalog(client, {
    schemas: ["public"],
    extraSearchPath: [],
    loginRole: "authenticator",
  });
  const table = catalog.findTable({ schema: "public", name: "t" })!;
  return makePolicyClaimsReader((work) => work(client)).read(
    table,
    applicablePolicies(catalog, table, "authenticated", "select")!,
  );
}

test.each([
  ["true", []],
  ["id > 5", []],
  ["current_setting('app.users_access') = 'open'", []],
  ["owner::public.citext = 'a'", []],
  ["owner::public.name = 'a'", []],
  ["current_setting('app.tenant', true) = owner and current_user = 'anon'", []],
  ["(other.jwt() ->> 'sub') = owner", []],
  ["array[owner]::public.names is not null", ["name"]],
  ["id operator(public.===) 1", ["by"]],
  ["public.is_mine(owner)", ["tenant"]],
  ["(operator(public.##) 'request.jwt.claims')::json ->> 'sub' = owner", "all"],
  ["(other.claims() ->> 'sub') = owner", ["sub"]],
  ["((select auth.jwt()) ->> 'sub') = owner", ["sub"]],
  ["((select nullif(current_setting('request.jwt.claims', true), '')::jsonb) -> 'level') = '1'", ["level"]],
  ["exists (select from public.plain where team = t.id)", []],
  ["id = (select auth.uid())", ["sub", "user_id"]],
  ["owner = (select auth.jwt() ->> 'sub') and level > (auth.jwt() -> 'level')::int", ["level", "sub"]],
  ["owner = current_setting('request.jwt.claims', true)::json ->> 'email'", ["email"]],
  ["owner = nullif(current_setting('request.jwt.claims', true), '')::jsonb ->> 'email'", ["email"]],
  ["public.level() > 1", ["level"]],
  ["(select auth.role()) = 'admin'", []],
  ["auth.jwt() = '{}'", "all"],
  ["(auth.jwt() || '{}') ->> 'sub' = owner", "all"],
  ["auth.jwt() ->> $$it's$$ = owner", "all"],
  ["(auth.jwt())['sub'] = '1'", "all"],
  ["lower(current_setting('request.jwt.claims', true))::json ->> 'sub' = owner", "all"],
  ["current_setting('REQUEST.JWT.CLAIMS', true)::json ->> 'sub' = owner", "all"],
  ["current_setting('request.jwt.claim.sub', true) = owner", ["sub"]],
  [
    "coalesce(current_setting('request.jwt.claim.sub', true), current_setting('request.jwt.claims', true)::json ->> 'sub') = owner",
    ["sub"],
  ],
  [
    "coalesce(nullif(current_setting('request.jwt.claim.email', true), ''), nullif(current_setting('request.jwt.claims', true), '')::jsonb ->> 'sub') = owner",
    ["email", "sub"],
  ],
  ["current_setting('request.jwt.claim.' || owner, true) = owner", "all"],
  ["current_setting(owner) = ''", "all"],
  ["(other.altered() ->> 'sub') = owner", "all"],
  ["query_to_xml('select auth.jwt()', true, true, '') is not null", "all"],
  ["public.immutable(id) = 1", "all"],
  ["id = (select public.total(team) from public.plain)", "all"],
  ["exists (select from public.seen where team = t.id)", "all"],
  ["exists (select from pg_catalog.pg_settings where setting = owner)", "all"],
  ["(auth.jwt() #>> '{app,team}') = owner", "all"],
  ["current_setting('request.' || 'jwt.claims') = ''", "all"],
  ["public.opaque() = 1", "all"],
  ["exists (select from public.bound where team = t.id)", "all"],
] as const)("a policy with %s depends on the claims %j", async (using, expected) => {
  const read = await claimsReadBy(using);
  expect(read === "all" ? read : [...read].sort()).toEqual(expected);
});

test("the setting that quotes all names in printed expressions hides no claim", async () => {
  await client.query("set quote_all_identifiers = on");
  try {
    expect(await claimsReadBy("owner = (select auth.jwt() ->> 'sub')")).toEqual(new Set(["sub"]));
  } finally {
    await client.query("reset quote_all_identifiers");
  }
});

test.each([
  [
    "one that adds values of a table",
    "return current_setting('request.jwt.claims')::jsonb || (select to_jsonb(team) from public.plain)",
  ],
  ["one in another language", "as 'begin return current_setting(''request.jwt.claims'')::jsonb; end' language plpgsql"],
  ["one that Postgres does not keep parsed", "as 'select current_setting(''request.jwt.claims'')::jsonb'"],
])("a function named auth.jwt is recognized by its body: %s may read all claims", async (_which, body) => {
  const { rows } = await client.query("select pg_get_functiondef('auth.jwt'::regproc) as shipped");
  const language = body.includes("language") ? "" : "language sql";
  await client.query(`create or replace function auth.jwt() returns jsonb stable ${language} ${body}`);
  expect(await claimsReadBy("auth.jwt() ->> 'sub' = owner")).toBe("all");
  await client.query(rows[0].shipped);
  expect(await claimsReadBy("auth.jwt() ->> 'sub' = owner")).toEqual(new Set(["sub"]));
});

test("callers with the same values of the claims that policies read share a key", () => {
  const caller = (claims: Claims): Caller => ({
    kind: "known",
    role: "authenticated",
    claims,
    claimsText: JSON.stringify(claims),
    expiresAt: null,
  });
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
  const texts = ['{"org":9007199254740993}', '{"org":9007199254740992}', '{"org":null}', "{}", '{"org":"null"}'];
  const keys = texts.map((claimsText) => claimsKey({ ...one!, claimsText }, new Set(["org"])));
  expect(new Set(keys).size).toBe(texts.length);
});
