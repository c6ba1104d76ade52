import fc from "fast-check";
import jwt from "jsonwebtoken";
import { afterAll, beforeAll, expect, test } from "vitest";
import { loadCatalog } from "../../../catalog/load-catalog.ts";
import { makeVisibilityCheck } from "../../../realtime/changes/row-visibility.ts";
import { useFixture } from "../../fixture.ts";
import { propertyRuns } from "../../property-runs.ts";
import { SECRET } from "../../secret.ts";
import { RawClient } from "../raw-client.ts";
import { openRealtimeFixture } from "../service.ts";

const SCHEMA = `
  create table public.things (id int primary key, org numeric, owner text, level int);
  alter table public.things enable row level security;
  create table public.ends (run text primary key);
  grant select on public.things, public.ends to anon, authenticated, service_role;
  create schema private_things;
  grant usage on schema private_things to anon, authenticated;
  create table private_things.members (sub text, org numeric);
  insert into private_things.members values ('a', 1), ('b', 9007199254740993), ('c', 9007199254740992);
  create table private_things.teams (sub text, org numeric, lead text);
  insert into private_things.teams values ('a', 1, 'x'), ('a', 9007199254740993, 'y'), ('b', 1, 'y');
  alter table private_things.teams enable row level security;
  create policy own on private_things.teams using (lead = (select auth.jwt() ->> 'name'));
  create view private_things.my_teams with (security_invoker) as select * from private_things.teams;
  grant select on all tables in schema private_things to anon, authenticated;
  create function private_things.org() returns numeric language plpgsql stable
    as $$ begin return (current_setting('request.jwt.claims', true)::json ->> 'org')::numeric; end $$;
  create function private_things.fixed_org(numeric) returns boolean language plpgsql immutable
    as $$ begin return $1 = (current_setting('request.jwt.claims', true)::json ->> 'org')::numeric; end $$;
  create function private_things.claims() returns json language sql stable
    return current_setting('request.jwt.claims', true)::json;
  create function private_things.orgs() returns setof numeric language sql stable security definer
    begin atomic select org from private_things.members where sub = (select auth.jwt() ->> 'sub'); end;
  grant execute on all functions in schema private_things to anon, authenticated`;

const big = "9007199254740993";
/** Some differ only in digits that JavaScript rounds, others in one claim or in none that policies read. */
const CALLERS = [
  ["anon", ""],
  ["authenticated", `"sub":"a","org":${big},"level":1,"name":"x"`],
  ["authenticated", '"sub":"a","org":9007199254740992,"level":1,"name":"x"'],
  ["authenticated", '"sub":"a","org":1,"level":3,"name":"x"'],
  ["authenticated", '"sub":"b","org":1,"level":3,"name":"x"'],
  ["authenticated", '"sub":"b","org":1.0,"level":3,"name":"y"'],
  ["authenticated", '"sub":"b","org":1,"level":3,"name":"x","jti":"another"'],
  ["authenticated", '"sub":"c","org":null,"level":null'],
  ["authenticated", '"sub":"c"'],
  ["authenticated", '"sub":"7","org":"1","level":0'],
  ["service_role", '"sub":"a","org":1'],
].map(([role, claims]) => `{"role":"${role}"${claims && `,${claims}`}}`);

const SHIPPED_JWT = "return nullif(current_setting('request.jwt.claims', true), '')::jsonb";
const ADDED = `jsonb_build_object('org', (select max(org) from private_things.members where sub = $$ ->> 'sub'))`;
const READ = "current_setting('request.jwt.claims', true)::jsonb";
/** The second to the fourth add an organization from a table. */
const JWT_BODIES = [
  `language sql ${SHIPPED_JWT}`,
  `language sql return ${READ} || ${ADDED.replace("$$", READ)}`,
  `language sql as 'select ${READ.replaceAll("'", "''")} || ${ADDED.replace("$$", READ).replaceAll("'", "''")}'`,
  `language plpgsql as 'begin return ${READ.replaceAll("'", "''")} || ${ADDED.replace("$$", READ).replaceAll("'", "''")}; end'`,
];

const claims = fc.constantFrom(
  "auth.jwt()",
  "(select auth.jwt())",
  "current_setting('request.jwt.claims', true)::json",
  "current_setting('Request.JWT.Claims', true)::jsonb",
  "nullif(current_setting('request.jwt.claims', true), '')::jsonb",
  "private_things.claims()",
);
const atom = fc.oneof(
  claims.map((text) => `org = (${text} ->> 'org')::numeric`),
  claims.map((text) => `owner = (select ${text} ->> 'sub')`),
  claims.map((text) => `level < (${text} ->> 'level')::int`),
  claims.map((text) => `(${text} -> 'level') is null`),
  claims.map((text) => `(${text} -> 'org')::text = org::text`),
  fc.constantFrom(
    "owner = (select auth.uid())::text",
    "(select auth.role()) = 'anon'",
    "current_user = 'authenticated'",
    "org = private_things.org()",
    "private_things.fixed_org(org)",
    "org in (select private_things.orgs())",
    "exists (select from private_things.members m where m.org = things.org and m.sub = (select auth.jwt() ->> 'sub'))",
    "org in (select t.org from private_things.teams t)",
    "org in (select t.org from private_things.my_teams t where t.sub = owner)",
    "level > 1",
    "true",
  ),
);
const condition = fc.oneof(
  atom,
  fc.tuple(atom, atom).map(([one, other]) => `(${one}) and (${other})`),
  fc.tuple(atom, atom).map(([one, other]) => `(${one}) or (${other})`),
  atom.map((one) => `not coalesce(${one}, false)`),
);
type Policies = { readonly permissive: string[]; readonly restrictive: string[]; readonly roles: string };
type Example = [Policies, string, [string, string, string][], string[]];
const policies: fc.Arbitrary<Policies> = fc.record({
  permissive: fc.array(condition, { minLength: 1, maxLength: 2 }),
  restrictive: fc.array(condition, { maxLength: 1 }),
  roles: fc.constantFrom("public", "authenticated"),
});
const row: fc.Arbitrary<[string, string, string]> = fc.tuple(
  fc.constantFrom("1", "9007199254740992", big, "null"),
  fc.constantFrom("'a'", "'b'", "'c'", "'7'", "null"),
  fc.constantFrom("0", "1", "2", "3", "null"),
);
/** The filter of a subscriber, and the same in SQL. */
const filter = fc.constantFrom<string[]>(
  ["", "true"],
  ["owner=eq.a", "owner = 'a'"],
  ["level=gt.1", "level > 1"],
  ["level=not.lte.1,owner=neq.c", "level > 1 and owner <> 'c'"],
  ["owner=match.^[ab]", "owner ~ '^[ab]'"],
  [`org=in.(1,${big})`, `org in (1, ${big})`],
);

const clients: RawClient[] = [];

const fixture = useFixture(() => openRealtimeFixture(SCHEMA));
beforeAll(async () => {
  for (const text of CALLERS)
    clients.push(await new RawClient(fixture.service.url, { key: jwt.sign(text, SECRET) }).opened());
});
afterAll(() => Promise.all(clients.map((client) => client.close())));

const run = (text: string, values?: unknown[]) => fixture.owner.query(text, values);

async function replacePolicies({
  permissive,
  restrictive,
  roles,
}: typeof policies extends fc.Arbitrary<infer T> ? T : never) {
  const { rows } = await run("select polname from pg_policy where polrelid = 'things'::regclass");
  for (const { polname } of rows) await run(`drop policy "${polname}" on things`);
  for (const [at, using] of permissive.entries())
    await run(`create policy p${at} on things for select to ${roles} using (${using})`);
  for (const [at, using] of restrictive.entries())
    await run(`create policy r${at} on things as restrictive for select using (${using})`);
}

/** The result of SELECT for each caller; null where it fails. */
async function selectAll(where: string): Promise<(number[] | null)[]> {
  const seen: (number[] | null)[] = [];
  for (const text of CALLERS) {
    await run("begin");
    const settings = "set_config('role', $1, true), set_config('request.jwt.claims', $2, true)";
    await run(`select ${settings}`, [JSON.parse(text).role, text]);
    const selected = await run(`select id from things where ${where} order by id`).catch(() => null);
    await run("rollback");
    seen.push(selected?.rows.map(({ id }) => id) ?? null);
  }
  return seen;
}

const ownOrganization = { permissive: ["org = (auth.jwt() ->> 'org')::numeric"], restrictive: [], roles: "public" };
const misspelt = {
  ...ownOrganization,
  permissive: ["org = (current_setting('Request.JWT.Claims')::jsonb ->> 'org')::numeric"],
};
const UNFILTERED = ["", "true"];
/** A rounded number, a claim that a function of the DBA adds, and a setting in another spelling. */
const EXAMPLES: Example[] = [
  [ownOrganization, JWT_BODIES[0]!, [[big, "'a'", "0"]], UNFILTERED],
  [ownOrganization, JWT_BODIES[1]!, [["1", "'a'", "0"]], UNFILTERED],
  [misspelt, JWT_BODIES[0]!, [["1", "'a'", "0"]], UNFILTERED],
];

const RUNS = propertyRuns(12);

test("a subscriber is sent the rows that its SELECT returns, whatever the policies read", async () => {
  await fc.assert(
    fc.asyncProperty(
      policies,
      fc.constantFrom(...JWT_BODIES),
      fc.array(row, { minLength: 1, maxLength: 6 }),
      filter,
      async (made, jwtBody, rows, [request, where]) => {
        const name = crypto.randomUUID();
        const topic = `realtime:${name}`;
        await run("truncate things");
        await run(`create or replace function auth.jwt() returns jsonb stable ${jwtBody}`);
        await replacePolicies(made);
        const bindings = [
          { event: "INSERT", schema: "public", table: "things", ...(request && { filter: request }) },
          { event: "INSERT", schema: "public", table: "ends" },
        ];
        await Promise.all(clients.map((client) => client.join(topic, { postgres_changes: bindings })));
        const values = rows.map((each, at) => `(${at}, ${each})`);
        await run(`insert into things values ${values}`);
        const expected = await selectAll(where!);
        await run("insert into ends values ($1)", [name]);

        for (const [number, client] of clients.entries()) {
          const last = await client.until(
            ({ topic: of, event, payload }) =>
              of === topic && (event === "phx_error" || payload.data?.table === "ends"),
          );
          const result = client.items.filter((item) => item.topic === topic && item.payload.data?.table === "things");
          const ids = last.event === "phx_error" ? null : result.map(({ payload }) => payload.data.record.id);
          // A subscriber without changes does not learn that its SELECT would fail.
          const wanted = expected[number] ?? (ids && []);
          expect([CALLERS[number], ids]).toEqual([CALLERS[number], wanted]);
          await client.reply(client.say(topic, "phx_leave", {}));
          client.items.length = 0;
        }
      },
    ),
    { numRuns: RUNS, examples: EXAMPLES },
  );
});

test("a policy without a condition for reading shows no row, as in Postgres", async () => {
  await replacePolicies({ permissive: ["owner = 'a'"], restrictive: [], roles: "public" });
  await run(
    "create policy may_write on things with check (true); create policy nothing on things as restrictive for select",
  );
  const client = clients[1]!;
  await client.join("realtime:unconditional", {
    postgres_changes: ["things", "ends"].map((table) => ({ event: "INSERT", schema: "public", table })),
  });
  await run("truncate things");
  await run("insert into things values (1, 1, 'a', 0), (2, 1, 'b', 0)");
  await run("insert into ends values ('unconditional')");
  await client.until(({ payload }) => payload.data?.table === "ends");
  const sent = client.items.flatMap(({ payload }) =>
    payload.data?.table === "things" ? [payload.data.record.id] : [],
  );
  const [, selected] = await selectAll("true");
  expect([sent, selected]).toEqual([[1], [1]]);
  await client.reply(client.say("realtime:unconditional", "phx_leave", {}));
  client.items.length = 0;
});

test("rows that a policy without claims shows are checked once per role, and only the others for each caller", async () => {
  const options = { schemas: ["public"], extraSearchPath: [], loginRole: "authenticator" };
  const { catalog } = await loadCatalog(fixture.owner, options);
  const table = catalog.findTable({ schema: "public", name: "things" })!;
  const checked: string[] = [];
  const check = makeVisibilityCheck({
    database: {
      run: async ({ settings }, { text, values = [] }) => {
        const claims = settings[0]![1];
        checked.push(`${claims} ${JSON.parse(String(values[0])).length}`);
        await run("begin");
        await run("select set_config('request.jwt.claims', $1, true)", [claims]);
        const { rows } = await fixture.owner.query<[boolean]>({ text, values: [...values], rowMode: "array" });
        await run("rollback");
        return { rows: rows.map(([isVisible]) => [isVisible ? "t" : "f"]) } as never;
      },
    },
    contextOf: ({ role, claimsText }) => ({ role, settings: [["request.jwt.claims", claimsText]] }),
    timeoutMs: 60_000,
  });
  const viewer = (sub: string) =>
    ({
      caller: {
        kind: "known",
        role: "authenticated",
        claims: { sub },
        claimsText: `{"sub":"${sub}"}`,
        expiresAt: null,
      },
      visibility: {
        using: "(level > 1) or (owner = (current_setting('request.jwt.claims')::json ->> 'sub'))",
        policies: [],
      },
      commonCondition: "(level > 1)",
    }) as const;
  const version = (owner: string, level: string) => new Map(Object.entries({ id: "1", owner, level }));
  const versions = [version("a", "2"), version("a", "0"), version("b", "0")];
  const published = versions.slice(0, 1);
  expect(await check(viewer("a"), table, versions)).toEqual([true, true, false]);
  expect(await check(viewer("b"), table, versions)).toEqual([true, false, true]);
  for (const sub of ["a", "b", "c"]) expect(await check(viewer(sub), table, published)).toEqual([true]);
  expect(checked).toEqual(['{"sub":"a"} 3', '{"sub":"a"} 2', '{"sub":"b"} 2', '{"sub":"a"} 1']);
});

test("the null of JSON is not the SQL null for policies and filters, nor for generated columns", async () => {
  await run(`create domain public.document as jsonb;
    create table public.documents (id int primary key, data jsonb, more json, other public.document,
      has_data boolean generated always as (data is not null) stored);
    alter table public.documents enable row level security;
    create policy shown on public.documents for select using (has_data and (more is null or other is not null));
    grant select on public.documents to anon`);
  const client = clients[0]!;
  const subscribe = (topic: string, filter: string) =>
    client.join(topic, {
      postgres_changes: [
        { event: "INSERT", schema: "public", table: "documents", ...(filter && { filter }) },
        { event: "INSERT", schema: "public", table: "ends" },
      ],
    });
  await subscribe("realtime:all", "");
  await subscribe("realtime:null", "data=eq.null");
  await run("truncate ends");
  await run(`insert into documents values (1, 'null', null, null), (2, null, null, null), (3, '1', 'null', null),
    (4, 'null', ' null ', 'null'), (5, '{}', null, null)`);
  await run("insert into ends values ('json')");
  const sentTo = async (of: string) => {
    await client.until(({ topic, payload }) => topic === of && payload.data?.table === "ends");
    return client.items.flatMap(({ topic, payload }) =>
      topic === of && payload.data?.table === "documents" ? [payload.data.record.id] : [],
    );
  };
  const selected = await selectFrom("documents");
  expect(selected).toEqual([1, 4, 5]);
  expect([await sentTo("realtime:all"), await sentTo("realtime:null")]).toEqual([selected, [1, 4]]);
  for (const topic of ["realtime:all", "realtime:null"]) await client.reply(client.say(topic, "phx_leave", {}));
  client.items.length = 0;
  await run("drop table public.documents; drop domain public.document");
});

/** The rows that the anonymous role selects. */
async function selectFrom(table: string): Promise<number[]> {
  await run("begin");
  await run("set local role anon");
  const { rows } = await run(`select id from ${table} order by id`);
  await run("rollback");
  return rows.map(({ id }) => id);
}
