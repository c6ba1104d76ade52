import { Writable } from "node:stream";
import type { GraphQLObjectType } from "grafast/graphql";
import pg from "pg";
import { pino } from "pino";
import { describe, expect, test } from "vitest";
import { loadCatalog } from "../../../catalog/load-catalog.ts";
import { SchemaKeeper } from "../../../graphql/schemas/schema-keeper.ts";
import { cloneDatabase } from "../../database.ts";
import { useFixture } from "../../fixture.ts";
import { serveGraphQL } from "../../graphql.ts";
import { openPreset } from "../../plugins/open-preset.ts";
import { propertyRuns } from "../../property-runs.ts";
import { serve } from "../../serve.ts";
import { until } from "../../until.ts";
import { Wire } from "../server/socket/wire.ts";

const lines: Record<string, unknown>[] = [];
const listTo = (heard: Record<string, unknown>[]) =>
  new Writable({
    write(chunk, _encoding, done) {
      heard.push(JSON.parse(String(chunk)));
      done();
    },
  });

const graphql = useFixture(() =>
  serveGraphQL({
    settings: { REST_REQUIRE_APIKEY: "false" },
    log: pino({ level: "info" }, listTo(lines)),
    before: `
      insert into public.users (name, email) values ('Ann', 'ann@example.org');
      insert into public.articles (author_id, title, content) values (1, 'First one', '');`,
  }),
);

const health = async (service = graphql) => (await fetch(`${service.service.url}/health`)).json();

const answers = (query: string, service = graphql) => expect.poll(async () => (await service.ask(query)).data);
const builds = () => lines.filter(({ msg }) => msg === "the GraphQL schema was built").length;

/** Each of them replaces the schema. */
const ROUNDS = propertyRuns(10);

/** There is no such column to order by. */
const BROKEN = `create table public.user (id bigint primary key, name text); grant select on public.user to anon;
  comment on table public.user is '@order size'`;
const OBJECT = '"@order size" in the comment on table public.user';

describe("the schema", () => {
  test("follows the database without a restart", async () => {
    expect((await graphql.ask("{ labels { name } }")).errors).toHaveLength(1);
    await graphql.sql(`
      create table public.labels (id bigint generated always as identity primary key, name text not null,
        article_id bigint not null references public.articles);
      alter table public.labels enable row level security;
      create policy select_shown on public.labels for select using (name <> 'hidden');
      grant select on public.labels to anon;
      insert into public.labels (name, article_id) values ('shown', 1), ('hidden', 1)`);
    await answers("{ label(id: 1) { name article { title } } hidden: label(id: 2) { name } }").toEqual({
      label: { name: "shown", article: { title: "First one" } },
      hidden: null,
    });
    await graphql.sql("alter table public.labels add colour text default 'red'");
    await answers("{ label(id: 1) { colour } }").toEqual({ label: { colour: "red" } });
    await graphql.sql("drop table public.labels");
    await expect
      .poll(async () => (await graphql.ask("{ label(id: 1) { name } }")).errors?.[0].extensions.code)
      .toBe("GRAPHQL_VALIDATION_FAILED");
  });

  test("is awaited by an operation that it may allow: a table that REST has already is queried without an error", async () => {
    for (let round = 0; round < ROUNDS; round++) {
      await graphql.sql(`
        create table public.tags_${round} (id int primary key);
        grant select on public.tags_${round} to anon;
        insert into public.tags_${round} values (1)`);
      await until(async () => (await fetch(`${graphql.service.url}/rest/v1/tags_${round}`)).ok);
      expect(await graphql.ask(`{ tags${round}(id: 1) { id } }`)).toMatchObject({
        data: { [`tags${round}`]: { id: "1" } },
      });
    }
    for (let round = 0; round < ROUNDS; round++) await graphql.sql(`drop table public.tags_${round}`);
  });

  test("follows the database while a migration has locked a table and a view", async () => {
    await graphql.sql(`
      create table public.bolts (id int primary key, n int default 1);
      create view public.shown_bolts as select * from public.bolts;
      grant select, insert, update on public.bolts, public.shown_bolts to anon`);
    await answers("{ bolt(id: 1) { id } }").toEqual({ bolt: null });
    const migration = new pg.Client({ connectionString: graphql.database.ownerUrl });
    await migration.connect();
    await migration.query("begin; lock table public.bolts, public.shown_bolts in access exclusive mode");
    await graphql.sql("create table public.nuts (id int primary key); grant select on public.nuts to anon");
    await answers("{ nut(id: 1) { id } }").toEqual({ nut: null });
    const response = await fetch(`${graphql.service.url}/api/v1/nuts`);
    expect(response.status).toBe(200);
    await migration.query("rollback");
    await migration.end();
    await graphql.sql("drop table public.bolts cascade; drop table public.nuts");
  });

  test("is built a few times at most for a script of many statements", async () => {
    const before = builds();
    const script = Array.from({ length: 40 }, (_, index) => `create table public.lot_${index} (id bigint primary key)`);
    for (const statement of script) await graphql.sql(statement);
    await graphql.sql("grant select on all tables in schema public to anon");
    await answers("{ lot39(id: 1) { id } }").toEqual({ lot39: null });
    expect(builds() - before).toBeLessThan(10);
  });

  test("is replaced between requests: none fails, and open subscriptions continue", async () => {
    const wire = await Wire.open(graphql.socketUrl, "graphql-transport-ws");
    wire.say({ type: "connection_init" });
    await wire.hear();
    wire.say({ type: "subscribe", id: "s", payload: { query: "subscription { onArticleCreated { title } }" } });
    await expect.poll(() => graphql.service.graphql.state().subscriptions).toBe(1);

    let isOver = false;
    const asking = Array.from({ length: 4 }, async () => {
      while (!isOver) expect((await graphql.ask("{ user(id: 1) { name articles { title } } }")).errors).toBeUndefined();
    });
    for (let round = 0; round < ROUNDS; round++) {
      await graphql.sql(`create table public.round_${round} (id bigint primary key)`);
      await graphql.sql(`grant select on public.round_${round} to anon`);
      await answers(`{ round${round}(id: 1) { id } }`).toEqual({ [`round${round}`]: null });
    }
    isOver = true;
    await Promise.all(asking);
    await graphql.sql("insert into public.articles (author_id, title, content) values (1, 'Still here', '')");
    expect(await wire.hear()).toMatchObject({ payload: { data: { onArticleCreated: { title: "Still here" } } } });
    wire.close();
  });

  test("omits what cannot be built and follows the database; the log and health name the omission while it lasts", async () => {
    expect(await health()).toEqual({ status: "ok" });
    await graphql.sql(BROKEN);
    await expect
      .poll(() => health())
      .toEqual({
        status: "degraded",
        reason: "GraphQL is served without an object of the database that its schema cannot be built with.",
        leftOut: [OBJECT],
      });
    const result = () =>
      lines.filter(({ msg, leftOut }) => String(msg).includes("served without") && String(leftOut).startsWith(OBJECT));
    expect(result()).toMatchObject([{ level: 40 }]);
    await graphql.sql("create table public.later (id int primary key); grant select on public.later to anon");
    await answers("{ later(id: 1) { id } }").toEqual({ later: null });
    expect((await graphql.ask("{ users { email } }")).data).toEqual({ users: [{ email: "ann@example.org" }] });
    expect(result()).toHaveLength(1);

    await graphql.sql("drop table public.user, public.later");
    await expect.poll(() => health()).toEqual({ status: "ok" });
  });
});

describe("the schema of a small database, of which builds are tried often to find what cannot be built", () => {
  const small = useFixture(() => serveGraphQL({ template: "empty" }));

  test("health counts omitted objects that the anonymous role may not use, without their names", async () => {
    await small.sql(`create table public.payroll (id int primary key); grant select on public.payroll to authenticated;
      comment on table public.payroll is '@order size'`);
    await expect
      .poll(() => health(small))
      .toEqual({
        status: "degraded",
        reason: "GraphQL is served without an object of the database that its schema cannot be built with.",
      });
    await small.sql("grant select (id) on public.payroll to anon");
    await expect
      .poll(() => health(small))
      .toMatchObject({ leftOut: ['"@order size" in the comment on table public.payroll'] });
    await small.sql("drop table public.payroll");
    await expect.poll(() => health(small)).toEqual({ status: "ok" });
  });

  test("omits a function that cannot be built, without changing the others, and has it when it can", async () => {
    await small.sql(`create table public.parts (id int primary key, n int); grant select on public.parts to anon;
      create function public.bump(x int, part parts) returns int language sql stable as 'select x';
      grant execute on function public.bump(int, parts) to anon`);
    const object = "function public.bump(int4, public.parts)";
    await expect.poll(() => health(small)).toMatchObject({ status: "degraded", leftOut: [object] });
    await answers("{ parts { totalCount } }", small).toEqual({ parts: { totalCount: 0 } });
    await small.sql("grant insert on public.parts to anon");
    await answers("{ bump(x: 1, part: { id: 1 }) }", small).toEqual({ bump: 1 });
    await expect.poll(() => health(small)).toEqual({ status: "ok" });
    await small.sql("drop table public.parts cascade");
  });
});

test.each([
  {
    change: "another definition",
    before: "select",
    meanwhile: "alter table public.notes rename id to number",
    found: ["id", "number"],
  },
  {
    change: "the definition that the catalogue has had all the time",
    before: "alter table public.notes rename id to number",
    meanwhile: "alter table public.notes rename number to id",
    found: ["number", "id"],
  },
])(
  "a schema that the database has outrun with $change while it was built is replaced when an operation finds out",
  async ({ before, meanwhile, found }) => {
    await using opened = await openPreset({
      template: "empty",
      sql: "create table public.notes (id int primary key); grant select on public.notes to anon",
    });
    const read = async () => {
      const options = { schemas: ["public"], extraSearchPath: [], loginRole: "authenticator" };
      return (await loadCatalog(opened.owner, options)).catalog;
    };
    let current = await read();
    let builds = 0;
    const renameMeanwhile: GraphileConfig.Plugin = {
      name: "RenameMeanwhilePlugin",
      gather: {
        hooks: {
          pgIntrospection_introspection: async () => {
            if (++builds > 1) return;
            await opened.owner.query(meanwhile);
            const now = await read();
            if (!now.schemas.get("public")?.tables.get("notes")?.columns.has("id")) current = now;
          },
        },
      },
    };
    const keeper = new SchemaKeeper({
      preset: () => ({ extends: [opened.preset], plugins: [renameMeanwhile] }),
      catalog: () => current,
      catchUp: async (outdated) => outdated !== current,
      anonRole: "anon",
      limits: { depth: 9, complexity: 999, tokens: 999, aliases: 9, directives: 9, rootFields: 9 },
      log: { info() {}, warn() {}, error() {} },
    });
    const columns = async () => {
      const { schema } = await keeper.current("anon");
      return Object.keys((schema.getType("Note") as GraphQLObjectType).getFields());
    };
    await opened.owner.query(before);
    await keeper.start();
    expect(await columns()).toEqual([found[0]]);
    const { version } = keeper;
    expect(await Promise.all([keeper.isNewerThan(version), keeper.isNewerThan(version)])).toEqual([true, true]);
    expect(await columns()).toEqual([found[1]]);
    // An error that has another cause makes one build at most.
    await keeper.isNewerThan(keeper.version);
    expect(await keeper.isNewerThan(keeper.version)).toBe(false);
    keeper.close();
  },
);

describe("at the start", () => {
  test("objects that fail the build are reported, and all others are served", async () => {
    const database = await cloneDatabase();
    const heard: Record<string, unknown>[] = [];
    const log = pino({ level: "warn" }, listTo(heard));
    const service = await serveGraphQL({ database, before: BROKEN, log });
    try {
      expect(heard.map(({ leftOut }) => leftOut).filter(Boolean)).toEqual([[expect.stringContaining(OBJECT)]]);
      expect((await service.ask("{ users { name } }")).data).toEqual({ users: [] });
      expect(await health(service)).toMatchObject({ status: "degraded", leftOut: [OBJECT] });
    } finally {
      await service.stop();
      await database.drop();
    }
  });

  test("GraphQL is served after a slow build, all other interfaces immediately", async () => {
    await using opened = new AsyncDisposableStack();
    const database = opened.adopt(await cloneDatabase("empty"), ({ drop }) => drop());
    const owner = opened.adopt(new pg.Client({ connectionString: database.ownerUrl }), (client) => client.end());
    await owner.connect();
    await owner.query(`create table public.things (id bigint primary key); grant select on public.things to anon;
      comment on table public.things is '@subscription onThingAdded on:insert'`);
    // The build of the schema reads inheritance; nothing else at this start does.
    await owner.query("begin; lock table pg_catalog.pg_inherits in access exclusive mode");

    const heard: Record<string, unknown>[] = [];
    const log = pino({ level: "info" }, listTo(heard));
    const start = serve(database, { REST_REQUIRE_APIKEY: "false", GRAPHQL_PRELOAD: "on" }, { log, schemaWaitMs: 0 });
    const { url } = opened.adopt(await start, (service) => service.stop());
    opened.defer(async () => void (await owner.query("rollback")));
    const ask = () =>
      fetch(`${url}/graphql`, {
        method: "POST",
        headers: { "Content-Type": "application/json" },
        body: '{"query": "{ __typename }"}',
      });

    const refused = await ask();
    expect([refused.status, refused.headers.get("retry-after")]).toEqual([503, "1"]);
    const errors = [{ extensions: { code: "SERVICE_UNAVAILABLE" }, message: expect.stringContaining("being built") }];
    expect(await refused.json()).toMatchObject({ errors });
    const wire = await Wire.open(`${url.replace(/^http/, "ws")}/graphql`, "graphql-transport-ws");
    wire.say({ type: "connection_init" });
    await wire.hear();
    wire.say({ type: "subscribe", id: "s", payload: { query: "subscription { onThingAdded { id } }" } });
    expect(await wire.hear()).toMatchObject({ type: "error", id: "s", payload: errors });

    const request = async (path: string) => (await fetch(`${url}${path}`)).status;
    expect(await Promise.all(["/rest/v1/things", "/health/ready", "/", "/graphiql"].map(request))).toEqual([
      200, 503, 200, 200,
    ]);
    const conditionNow = async () => (await fetch(`${url}/health`)).json();
    expect(await conditionNow()).toEqual({ status: "degraded", reason: "The GraphQL schema is still being built." });
    const result = (what: string) => heard.filter(({ msg }) => String(msg).includes(what)).length;
    expect([result("starts without it"), result("schema was built")]).toEqual([1, 0]);

    await owner.query("rollback");
    await expect.poll(async () => (await ask()).status).toBe(200);
    expect(await conditionNow()).toEqual({ status: "ok" });
    expect(await request("/health/ready")).toBe(200);
    expect([result("starts without it"), result("schema was built")]).toEqual([1, 1]);
    wire.close();
  });
});
