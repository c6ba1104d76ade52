import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { loadCatalog } from "../../../catalog/load-catalog.ts";
import { readConfig } from "../../../config/config.ts";
import { REALTIME_PUBLICATION } from "../../../live/stream/replication-slots.ts";
import { runChecks } from "../../../operations/doctor/doctor.ts";
import {
  type DoctorFacts,
  readLoginFacts,
  readReplicaFacts,
  readReplicationFacts,
  readServerFacts,
} from "../../../operations/doctor/facts.ts";
import { withClient } from "../../../postgres/client/with-client.ts";
import { cloneDatabase, useDatabase } from "../../database.ts";
import { SECRET } from "../../secret.ts";
import { serverBinaries } from "../../server-binaries.ts";

const { major } = await serverBinaries();

type Database = Awaited<ReturnType<typeof cloneDatabase>>;

const ILL = `
  create schema shop;
  grant usage on schema shop to anon, authenticated;
  create table shop.open (id int primary key);
  grant select on shop.open to anon;
  create table shop.silent (id int primary key);
  alter table shop.silent enable row level security;
  grant select (id) on shop.silent to authenticated;
  create table shop.unreached (id int primary key);
  create table shop.orders (id int primary key, "Buyer" text not null, parent int constraint orders_parent references shop.orders);
  alter table shop.orders enable row level security;
  create policy own on shop.orders using ("Buyer" = current_setting('request.jwt.claims', true));
  grant select on shop.orders to authenticated;
  create view shop.seen as select * from shop.orders;
  grant select on shop.seen to authenticated;
  create materialized view shop.copied as select * from shop.orders;
  grant select on shop.copied to public;
  create function shop.trusted() returns int language sql security definer as 'select 1';
  create function shop.hidden() returns int language sql security definer as 'select 1';
  revoke execute on function shop.hidden from public;
  create schema closed;
  create function closed.touch() returns trigger language plpgsql security definer as 'begin return new; end';
  create schema shared;
  grant create on schema shared to public;
  create publication watched for table shop.orders;
`;

const WELL = `
  create schema shop;
  grant usage on schema shop to anon, authenticated;
  create table shop.orders (id int primary key, buyer text not null, parent int references shop.orders, made_at timestamptz);
  create index on shop.orders (parent);
  create index on shop.orders (buyer);
  alter table shop.orders enable row level security;
  alter table shop.orders replica identity full;
  create policy own on shop.orders using (buyer = (select current_setting('request.jwt.claims', true)));
  create policy admin_all on shop.orders to admin using (true) with check (true);
  create policy just_made on shop.orders using (made_at = now() or current_timestamp = made_at);
  grant select on shop.orders to authenticated;
  create view shop.seen with (security_invoker = true) as select * from shop.orders;
  grant select on shop.seen to authenticated;
  create publication watched for table shop.orders;
`;

const ill = useDatabase({ template: "empty", sql: ILL });
const well = useDatabase({ template: "empty", sql: WELL });

async function examined(database: Database, environment = {}, loginUrl = database.url) {
  return runChecks(await factsOf(database, environment, loginUrl));
}

async function factsOf({ url, ownerUrl }: Database, environment = {}, loginUrl = url): Promise<DoctorFacts> {
  const { config } = readConfig({ PGRST_DB_SCHEMAS: "shop", ...environment });
  return withClient(ownerUrl, async (owner): Promise<DoctorFacts> => {
    const options = { schemas: config.schemas, extraSearchPath: [], loginRole: "authenticator" };
    const { catalog } = await loadCatalog(owner, options);
    const login = await readLoginFacts(loginUrl, { catalog, config });
    const clients = ["anon", "authenticated"];
    const server = await readServerFacts(owner, {
      catalog,
      clients,
      searched: ["shared"],
      claimsHook: config.claimsHook,
      login: login.name,
    });
    // Slots and the release are the server's, which the tests share.
    const own = { ...server, release: "18.6", standbys: 0, slots: [], spareSlots: { slots: 5, senders: 5 } };
    const stream = await readReplicationFacts(owner, "watched");
    return {
      catalog,
      config,
      clients,
      servesUsers: false,
      login,
      replication: stream,
      server: own,
      missingTriggerSql: null,
      replicas: [],
      hosts: [],
    };
  });
}

const DEPLOYED = {
  DATABASE_URL: "postgresql://authenticator@localhost/app",
  JWT_SECRET: SECRET,
};

describe("runChecks", () => {
  test("finds no problems in a correct database", async () => {
    expect(await examined(well)).toEqual([]);
  });

  test("finds security, performance and configuration problems, the most severe first", async () => {
    const found = (await examined(ill)).map(({ kind, problem: what }) => `${kind}: ${what}`);
    expect(found).toEqual([
      'danger: Every role may create tables and functions in "shared", which is on the search path.',
      'danger: Row-level security does not apply to "shop"."copied", a materialized view: every row is accessible (anon: select; authenticated: select).',
      'danger: Every row of "shop"."open" is accessible: row-level security is disabled (anon: select).',
      'danger: The view "shop"."seen" bypasses the policies of its tables (authenticated: select).',
      'danger: "shop"."trusted"() runs with the rights of postgres (security definer) without a fixed search_path.',
      'advice: No row of "shop"."silent" is visible: there are privileges (authenticated: select), but no policy.',
      'advice: "shop"."trusted"() runs with the rights of postgres, which bypasses policies, and anon, authenticated may execute it.',
      "advice: closed.touch() runs with the rights of postgres (security definer) without a fixed search_path.",
      'advice: Change events do not contain the old rows of "shop"."orders".',
      'advice: Administrators see and change only what policies for others allow: no policy is for admin on "shop"."orders".',
      'slow: The policy "own" on "shop"."orders" evaluates who the caller is once per row.',
      'slow: Embedding by orders_parent and deleting referenced rows scan all of "shop"."orders".',
      'slow: A policy of "shop"."orders" filters rows by "Buyer", which has no index.',
    ]);
  });

  test("suggests policies with which administrators see every row", async () => {
    const database = await cloneDatabase("empty");
    const about = async () =>
      (await examined(database)).filter(({ problem: what }) => what.startsWith("Administrators"));
    try {
      await withClient(database.ownerUrl, (client) => client.query(ILL));
      const [{ fix } = { fix: "" }] = await about();
      await withClient(database.ownerUrl, (client) => client.query(fix));
      expect(await about()).toEqual([]);
    } finally {
      await database.drop();
    }
  });

  test("reports a login role and settings that are meant for development", async () => {
    const whats = (await examined(well, { ...DEPLOYED, RATE_LIMIT: "0" }, well.ownerUrl)).map(
      ({ problem: what }) => what,
    );
    expect(whats).toEqual([
      'Requests log in as "postgres", a superuser: no privilege and no policy restricts them.',
      "DATABASE_URL is set, but NODE_ENV is not production.",
      "Links in emails and redirects contain the address that the service listens on.",
      "There is no rate limit.",
    ]);
    const production = { ...DEPLOYED, NODE_ENV: "production", PUBLIC_URL: "https://example.org" };
    expect(await examined(well, production)).toEqual([]);
  });

  test("reports a Studio that is open, or runs SQL, in a deployment", async () => {
    const settings = { ...DEPLOYED, PUBLIC_URL: "http://localhost", STUDIO: "open", STUDIO_SQL: "on" };
    const fixes = (await examined(well, settings)).map(({ fix }) => fix);
    expect(fixes).toEqual(expect.arrayContaining(["STUDIO=administrators", "STUDIO_SQL=false"]));
    const off = (await examined(well, { ...settings, STUDIO: "off" })).map(({ fix }) => fix);
    expect(off.filter((fix) => fix.startsWith("STUDIO"))).toEqual([]);
  });

  test("reports open access to /users, if that collection exists", async () => {
    const aboutUsers = async (environment: NodeJS.ProcessEnv, servesUsers: boolean) => {
      const found = runChecks({ ...(await factsOf(well, { ...DEPLOYED, ...environment })), servesUsers });
      return found.map(({ problem: what }) => what).filter((what) => what.includes("users"));
    };
    const problem = "Everybody may read e-mail addresses and drafts, and change and delete users.";
    const opened = { NODE_ENV: "production", USERS_ACCESS: "open" };
    const openEmbedded = { DATABASE_URL: "", OWNER_DATABASE_URL: "", USERS_ACCESS: "open" };
    expect(await aboutUsers({}, true)).toEqual([]);
    expect(await aboutUsers(opened, true)).toEqual([problem]);
    expect(await aboutUsers({ ...openEmbedded, HOST: "0.0.0.0" }, true)).toEqual([problem]);
    expect(await aboutUsers({ ...openEmbedded, HOST: "::1" }, true)).toEqual([]);
    expect([await aboutUsers({}, false), await aboutUsers(opened, false)]).toEqual([[], []]);
  });

  test("reports a publication that does not publish via the partition root", async () => {
    const database = await cloneDatabase("empty");
    const about = async () =>
      (await examined(database)).filter(({ problem: what }) => what.includes("under their own names"));
    try {
      await withClient(database.ownerUrl, (client) =>
        client.query(`
          create schema shop;
          create table shop.events (id int, day date) partition by range (day);
          create table shop.events_2026 partition of shop.events for values from ('2026-01-01') to ('2027-01-01');
          alter table shop.events enable row level security;
          create publication watched for table shop.events`),
      );
      const [finding, ...others] = await about();
      expect([finding?.problem, others]).toEqual([
        expect.stringMatching(/^Changes cannot be subscribed to: "shop"\."events"\. /),
        [],
      ]);
      const fix = finding!.fix.replace(REALTIME_PUBLICATION, "watched");
      await withClient(database.ownerUrl, (client) => client.query(fix));
      expect(await about()).toEqual([]);
    } finally {
      await database.drop();
    }
  });

  test("reports that changes are unavailable: all, if the owner may not replicate, and those of unpublished tables", async () => {
    const content = await cloneDatabase("content");
    try {
      await withClient(content.ownerUrl, (client) =>
        client.query(`drop event trigger content_service_publish_rows; create table public.unheard (id int primary key);
          create view public.seen with (security_invoker = true) as select id from public.unheard`),
      );
      const facts = await factsOf(content, { PGRST_DB_SCHEMAS: "public" });
      const stream = await withClient(content.ownerUrl, (client) => readReplicationFacts(client, REALTIME_PUBLICATION));
      const byLogin = await withClient(content.url, (client) => readReplicationFacts(client, REALTIME_PUBLICATION));
      const about = (found: DoctorFacts["replication"]) =>
        runChecks({ ...facts, replication: found }).filter(({ problem: what }) =>
          /^(Row changes are unavailable|Changes cannot be subscribed to)/.test(what),
        );
      expect(about(stream)).toEqual([
        {
          kind: "advice",
          problem: 'Changes cannot be subscribed to: "public"."unheard" is not published.',
          fix: 'alter table "public"."unheard" replica identity full; alter publication supabase_realtime add table "public"."unheard";',
        },
      ]);
      expect(about({ ...byLogin, isByHand: false }).map(({ problem: what }) => what)).toEqual([
        "Row changes are unavailable: the database owner lacks the REPLICATION attribute.",
      ]);
      await withClient(content.ownerUrl, (client) => client.query(about(stream)[0]!.fix));
      const fixed = await withClient(content.ownerUrl, (client) => readReplicationFacts(client, REALTIME_PUBLICATION));
      expect(about(fixed)).toEqual([]);
    } finally {
      await content.drop();
    }
  });

  // Older versions neither publish generated columns nor have virtual ones.
  describe.runIf(major >= 18)("for tables that a publication has only in part", () => {
    const TABLES = ["plain", "stored", "virtual", "partial"] as const;
    let database: Database;
    beforeEach(async () => {
      database = await cloneDatabase("empty");
      await run(`
        create schema shop;
        create table shop.plain (id int primary key, n int);
        create table shop.stored (id int primary key, n int, twice int generated always as (n * 2) stored);
        create table shop.virtual (id int primary key, n int, twice int generated always as (n * 2) virtual);
        create table shop.partial (id int primary key, n int);
        insert into shop.plain values (1, 1); insert into shop.stored values (1, 1);
        insert into shop.virtual values (1, 1); insert into shop.partial values (1, 1);
        grant usage on schema shop to authenticated;
        grant select on all tables in schema shop to authenticated;
        create publication ${REALTIME_PUBLICATION} for table shop.plain, shop.stored, shop.virtual, shop.partial (id);`);
    });
    afterEach(() => database.drop());

    const run = (sql: string) => withClient(database.ownerUrl, (client) => client.query(sql));
    const findings = async () => {
      const stream = await withClient(database.ownerUrl, (client) =>
        readReplicationFacts(client, REALTIME_PUBLICATION),
      );
      const found = runChecks({ ...(await factsOf(database)), replication: stream });
      return found.filter(({ problem: what, fix }) => /old rows|rejects/.test(what) && fix);
    };
    const changed = async () => {
      const result = await Promise.allSettled(TABLES.map((name) => run(`update shop.${name} set n = n`)));
      return TABLES.filter((_, index) => result[index]!.status === "fulfilled");
    };

    test("suggests no fix that would make Postgres reject their updates", async () => {
      for (const { fix } of await findings()) await run(fix);
      expect(await changed()).toEqual(TABLES);
      expect(await findings()).toEqual([]);
    });

    test("reports that Postgres rejects their updates, with a fix", async () => {
      for (const name of TABLES) await run(`alter table shop.${name} replica identity full`);
      expect(await changed()).toEqual(["plain"]);
      const found = await findings();
      expect(found.map(({ kind, problem: what }) => `${kind}: ${what}`)).toEqual(
        ["partial", "stored", "virtual"].map(
          (name) =>
            `danger: Postgres rejects UPDATE and DELETE of "shop"."${name}": its replica identity is full, but the publication does not have all columns.`,
        ),
      );
      for (const { fix } of found) await run(fix);
      expect(await changed()).toEqual(TABLES);
      expect(await findings()).toEqual([]);
    });
  });

  test("reports that nobody can sign in by the function of CLAIMS_HOOK, and who else may execute it", async () => {
    const problems = async (body: string) => {
      await withClient(well.ownerUrl, (client) => client.query(body));
      const found = await examined(well, { CLAIMS_HOOK: "hooks.claims" });
      return found.map(({ problem: what, fix }) => [what, fix]);
    };
    expect(await problems("create schema hooks")).toEqual([
      [expect.stringContaining("hooks.claims(jsonb), which does not exist"), expect.any(String)],
    ]);
    const create = "create function hooks.claims(event jsonb) returns jsonb language sql as 'select event'";
    const [[problem, fix] = []] = await problems(`${create}; revoke execute on function hooks.claims from public`);
    expect(problem).toBe(
      "Nobody can sign in: supabase_auth_admin may not execute hooks.claims(jsonb), which CLAIMS_HOOK names.",
    );
    expect(await problems(fix!)).toEqual([]);
    const [[open, close] = []] = await problems(
      "grant usage on schema hooks to anon; grant execute on function hooks.claims to anon",
    );
    expect(open).toMatch(/^Callers may execute hooks\.claims\(jsonb\), .* \(anon\)/);
    expect(await problems(close!)).toEqual([]);
    await problems("drop schema hooks cascade");
  });

  test("reports queued function calls in a role that the login cannot set", async () => {
    const queue = `insert into content_service.tasks (owner, work, caller, request, body, function)
      values ('role', 'f()', '{"role": "Doctor''s role"}', '{}', '', 'public.f()')`;
    const platform = await cloneDatabase("platform");
    await withClient(platform.ownerUrl, (client) => client.query(`${WELL}; ${queue}`));
    const found = await examined(platform);
    await platform.drop();
    expect(found).toContainEqual({
      kind: "danger",
      problem: `1 queued function call will fail: "authenticator" is not a member of "Doctor's role".`,
      fix: `grant "Doctor's role" to "authenticator";`,
    });
  });

  test("reports problems of the server, roles, connections and replicas", async () => {
    const facts = await factsOf(well);
    const server = {
      ...facts.server,
      clients: [
        { name: "anon", superuser: false, bypassesRowSecurity: true, mayLogIn: false },
        { name: "authenticated", superuser: false, bypassesRowSecurity: false, mayLogIn: true },
        { name: "god", superuser: true, bypassesRowSecurity: true, mayLogIn: true },
      ],
      slots: [
        { name: "read", isActive: true, isLost: false, retainedBytes: 2 ** 40 },
        { name: "young", isActive: false, isLost: false, retainedBytes: 2 ** 20 },
        { name: "left", isActive: false, isLost: false, retainedBytes: 3 * 2 ** 30 },
        { name: "late", isActive: false, isLost: true, retainedBytes: 0 },
      ].map((slot) => ({ ...slot, isPhysical: false, isFailover: false, isKeeper: false })),
      spareSlots: { slots: 0, senders: 9 },
    };
    const replicas = (["well", "away", "primary", "without feedback"] as const).map((status) => ({
      host: "db2",
      copiesSlots: null,
      status,
    }));
    const login = {
      ...facts.login,
      sessions: {
        isRouted: true,
        isExplicit: true,
        keepsSettings: true,
        settingMode: "function" as const,
        preparesStatements: false,
      },
      isInTheOpen: true,
    };
    const stream = { ...facts.replication, isPooled: true };
    const found = runChecks({ ...facts, server, replicas, login, replication: stream }).map(
      ({ kind, problem: what }) => `${kind}: ${what}`,
    );
    expect(found).toEqual([
      'danger: Callers become "anon", which bypasses row-level security.',
      'danger: Callers become "god", a superuser: no privilege and no policy restricts them.',
      "danger: The owner's direct connection goes through a connection pooler, which supports neither LISTEN nor replication nor session locks.",
      "danger: Network connections to Postgres are not encrypted.",
      "danger: The replication slot left keeps 3.0 GB of WAL and is inactive.",
      "danger: Replica 3 of READ_DATABASE_URLS (db2) is not a replica.",
      'advice: Clients can log in as "authenticated" directly, without the service.',
      "advice: DATABASE_URL is that of a router that runs the statements of one request in several sessions: requests are sent with BEGIN and COMMIT.",
      "advice: DATABASE_URL is that of a router that does not keep prepared statements: each request is parsed and planned again.",
      "advice: The replication slot late is lost: the WAL that it needs was removed.",
      "advice: Row changes may become unavailable: max_replication_slots leaves 0 free, and each gateway needs one.",
      "advice: Replica 2 of READ_DATABASE_URLS (db2) is unreachable and receives no reads.",
      "advice: Replica 4 of READ_DATABASE_URLS (db2) cancels reads that conflict with vacuum.",
    ]);

    // With several hosts, which change roles, all of them may be listed for reads.
    const config = { ...facts.config, databaseUrl: "postgresql://db1,db2/app" };
    const problemsOf = (statuses: readonly (typeof replicas)[number][]) =>
      runChecks({ ...facts, config, replicas: statuses }).filter(({ problem }) => problem.includes("is not a replica"));
    expect(problemsOf(replicas)).toEqual([]);
    expect(problemsOf([...replicas, ...replicas])).toHaveLength(2);
  });

  test("reports text columns without a maximum length that callers may write, and none of the service's own", async () => {
    const content = await cloneDatabase("content");
    try {
      await withClient(content.ownerUrl, (client) =>
        client.query(`
          create domain public.code as text check (length(value) < 10);
          create domain public.free as text check (value <> '');
          create table public.notes (
            id int primary key, "A note" text, least text check (length(least) >= 5), alike public.free, data jsonb,
            words text[] check (cardinality(words) < 9), slug text check (slug ~ '^[a-z]+$'),
            short varchar(20), most text check (length(most) between 1 and 20), coded public.code, size text check (octet_length(size) < 9),
            kind text check (kind in ('a', 'b')), tag text check (tag ~ '^[a-z]{2,3}(-([A-Z]|[0-9]){2}){0,10}$'), n int,
            list text[] check (octet_length(array_to_string(list, ',')) <= 100), file bytea check (length(file) <= 100)
          );
          grant insert on public.notes to anon;
          create table public.kept (id int primary key, note text);
          alter table public.kept enable row level security;
          create policy read on public.kept for select using (true);
          grant select, insert on public.kept to anon`),
      );
      const found = async () =>
        runChecks(await factsOf(content, { PGRST_DB_SCHEMAS: "public" })).filter(({ problem: what }) =>
          what.includes("any length"),
        );
      const [finding, ...others] = await found();
      expect(others).toEqual([]);
      expect(finding!.problem).toBe(
        'Clients may write text of any length into "public"."notes": "A note", "least", "alike", "data", "words", "slug".',
      );
      await withClient(content.ownerUrl, (client) => client.query(finding!.fix));
      expect(await found()).toEqual([]);
    } finally {
      await content.drop();
    }
  });

  test("finds an inactive replication slot, and unusable replicas", async () => {
    await withClient(well.ownerUrl, async (owner) => {
      const name = `idle_${Date.now()}`;
      const slots = async () => {
        const { catalog } = await factsOf(well);
        return (
          await readServerFacts(owner, { catalog, clients: [], searched: [], claimsHook: null, login: "authenticator" })
        ).slots;
      };
      await owner.query("select pg_create_physical_replication_slot($1, true)", [name]);
      expect(await slots()).toContainEqual({
        name,
        isActive: false,
        isLost: false,
        isPhysical: true,
        retainedBytes: expect.any(Number),
        isFailover: major >= 17 ? false : null,
        isKeeper: false,
      });
      await owner.query("select pg_drop_replication_slot($1)", [name]);
      expect((await slots()).map((slot) => slot.name)).not.toContain(name);
    });
    expect(await readReplicaFacts(well.ownerUrl)).toMatchObject({ status: "primary" });
    expect(await readReplicaFacts("postgresql://nobody@127.0.0.1:1/none")).toEqual({
      host: "127.0.0.1",
      copiesSlots: null,
      status: "away",
    });
  });

  test("a fix that is SQL fixes its problem", async () => {
    const before = await examined(ill);
    const fixes = before.filter(({ fix }) => !fix.startsWith("--"));
    expect(fixes.length).toBeGreaterThan(6);
    await withClient(ill.ownerUrl, async (client) => {
      for (const { fix } of fixes) await client.query(fix);
    });
    const left = (await examined(ill)).map(({ problem: what }) => what);
    const fixed = fixes.map(({ problem: what }) => what);
    expect(left.filter((what) => fixed.includes(what))).toEqual([]);
  });
});
