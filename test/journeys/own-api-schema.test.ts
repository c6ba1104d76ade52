import { SignJWT } from "jose";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { findDrift } from "../../migrate/drift.ts";
import { runMigrations } from "../../migrate/migrate.ts";
import type { Service } from "../../service/wiring/service.ts";
import { type Receiver, startReceiver } from "../jobs/webhooks/receiver.ts";
import { type OwnHistories, ownHistories } from "../migrate/own-histories.ts";
import { SECRET } from "../secret.ts";
import { serve } from "../serve.ts";
import { until } from "../until.ts";

/** A schema `api` of a project, with two names that the service uses, too. */
const PROJECT = `
  create schema api;
  grant usage on schema api to anon, authenticated, service_role;
  create table api.things (id bigint primary key, name text not null);
  create table api.webhooks (id bigint primary key, target text);
  grant all on api.things, api.webhooks to anon, authenticated, service_role;
  alter table api.things enable row level security;
  create policy all_things on api.things using (true) with check (true);
  alter table api.webhooks enable row level security;
  create policy all_webhooks on api.webhooks using (true) with check (true);
  insert into api.things values (1, 'lamp');
  insert into api.webhooks values (7, 'theirs');
  create function api.count_things() returns bigint language sql stable return (select count(*) from api.things);
  grant execute on function api.count_things() to anon, authenticated, service_role;
  create function public.queue_count() returns uuid language sql as $$ select content_service.enqueue('api.count_things') $$;
  grant execute on function public.queue_count() to authenticated;`;

const OWN = ["things", "webhooks", "count_things"];
const OF_SERVICE = `
  select relname as name from pg_class where relnamespace = to_regnamespace('api') and relkind = 'r'
  union all select proname from pg_proc where pronamespace = to_regnamespace('api')`;

describe.each([
  ["that its first migration creates", "before"],
  ["that a later migration creates", "after"],
  ["that was there before the first migration", "foreign"],
] as const)("a project with a schema api %s", (_, order) => {
  let own: OwnHistories;
  let receiver: Receiver;
  let service: Service;
  let token: string;

  beforeAll(async () => {
    own = await ownHistories(["platform"]);
    if (order === "foreign") {
      await own.rows(PROJECT.split("create function public.queue_count")[0]!.replace(/grant .*;/g, ""));
      await runMigrations({ name: "migrate" }, own.settings);
      await own.rows(
        PROJECT.match(/grant .*;/g)!
          .slice(0, 3)
          .join("\n"),
      );
    } else {
      if (order === "after") {
        await own.add("project", "other", "create table public.others (id bigint primary key)");
        await runMigrations({ name: "migrate" }, own.settings);
        await own.rows(
          "insert into api.webhooks (name, table_name, url, role) values ('early', 'public.others', 'http://127.0.0.1:1', 'service_role')",
        );
      }
      await own.add("project", "schema", PROJECT);
      await runMigrations({ name: "migrate" }, own.settings);
    }
    receiver = await startReceiver();
    service = await serve(
      { url: own.requestUrl, ownerUrl: own.settings.url },
      {
        BASE_SCHEMA: "platform",
        MIGRATIONS_DIR: own.history("project").folder,
        PGRST_DB_SCHEMAS: "api, public",
        WEBHOOK_NETWORK: "loopback",
        REST_REQUIRE_APIKEY: "false",
      },
    );
    token = await new SignJWT({ role: "authenticated", sub: "1" })
      .setProtectedHeader({ alg: "HS256" })
      .setExpirationTime("1h")
      .sign(new TextEncoder().encode(SECRET));
  });
  afterAll(async () => {
    await service?.stop();
    await receiver?.close();
    await own?.[Symbol.asyncDispose]();
  });

  const ask = async (path: string, init: RequestInit = {}) => {
    const headers = { authorization: `Bearer ${token}`, "content-type": "application/json", ...init.headers };
    const response = await fetch(`${service.url}${path}`, { ...init, headers });
    return { status: response.status, headers: response.headers, text: await response.text() };
  };

  test("has nothing of the service in it", async () => {
    const names = (await own.rows(OF_SERVICE)).map(({ name }) => name);
    expect(names.sort()).toEqual(OWN.toSorted());
    expect(await own.rows("select status from content_service.versions order by number")).toEqual([
      { status: "supported" },
      { status: "current" },
    ]);
  });

  test("is served by every interface, and only that", async () => {
    expect((await ask("/rest/v1/things?select=name")).text).toBe('[{"name":"lamp"}]');
    expect((await ask("/rest/v1/webhooks?select=target")).text).toBe('[{"target":"theirs"}]');
    expect((await ask("/rest/v1/rpc/count_things")).text).toBe("1");
    expect((await ask("/rest/v1/rpc/enqueue", { method: "POST", body: '{"function":"x"}' })).status).toBe(404);
    const { paths } = JSON.parse((await ask("/rest/v1/", { headers: { accept: "application/openapi+json" } })).text);
    expect(Object.keys(paths).sort()).toEqual(["/", "/rpc/count_things", "/things", "/webhooks"]);
    const query = JSON.stringify({ query: "{ __schema { types { name } } }" });
    const { text } = await ask("/graphql", { method: "POST", body: query });
    expect(text).toMatch(/Thing/);
    expect(text).not.toMatch(/Schedule|enqueue|ReportProgress|FieldError/i);
  });

  test("leaves versions, schedules, webhooks and the queue working", async () => {
    await own.rows("update content_service.versions set status = 'deprecated', sunset = '2099-01-01' where number = 1");
    await until(async () => (await ask("/api/v1/things")).headers.get("x-api-sunset") !== null);
    await own.rows(
      `insert into content_service.webhooks (name, table_name, url, role)
        values ('things', 'api.things', '${receiver.url}', 'service_role')`,
    );
    await own.rows("insert into api.things values (2, 'chair')");
    await until(() => receiver.requests.some(({ body }) => body.includes("chair")));
    await own.rows(
      `insert into content_service.schedules (name, cron, function, role)
        values ('count', '0 0 1 1 *', 'api.count_things', 'service_role')`,
    );
    await own.rows("select content_service.run_schedule('count')");
    await until(async () => {
      const [run] = await own.rows("select status from content_service.schedule_runs");
      return run?.status === "done";
    });
    expect(receiver.requests.length).toBeGreaterThan(0);
  });

  test.skipIf(order === "foreign")("lets callers use the queue, and has no drift", async () => {
    const queued = await ask("/rest/v1/rpc/queue_count", {
      method: "POST",
      body: "{}",
      headers: { "content-profile": "public" },
    });
    expect(queued).toMatchObject({ status: 200, text: expect.stringMatching(/^"[0-9a-f-]{36}"$/) });
    expect(await findDrift(own.settings)).toEqual([]);
  });

  test.runIf(order === "foreign")("has drift by that schema alone", async () => {
    const drift = await findDrift(own.settings);
    expect(drift.map(({ object }) => object).filter((object) => !/\bapi\b/.test(object))).toEqual([]);
  });

  test("is kept by later releases, and by what creates lost objects again", async () => {
    await own.add("platform", "later", "comment on table api.versions is 'Later.';");
    await own.rows("drop function content_service.run_schedule(text)");
    await runMigrations({ name: "migrate" }, own.settings);
    expect(
      await own.rows(
        "select obj_description('content_service.versions'::regclass) as comment, to_regprocedure('content_service.run_schedule(text)') is not null as restored",
      ),
    ).toEqual([{ comment: "Later.", restored: true }]);
    expect((await own.rows(OF_SERVICE)).length).toBe(OWN.length);
  });
});
