import jwt from "jsonwebtoken";
import { describe, expect, test } from "vitest";
import { CITUS, distribute } from "../citus-catalog.ts";
import { useDatabase } from "../database.ts";
import { useFixture } from "../fixture.ts";
import { Inbox } from "../realtime/inbox.ts";
import { clientOf, subscribed } from "../realtime/service.ts";
import { SECRET } from "../secret.ts";
import { serve } from "../serve.ts";

// The rows of all tables are on this server: the tests show which requests are served and which are refused, and how.
const database = useDatabase({
  template: "platform",
  sql: `
    ${CITUS}
    create table public."sizes_102041" (id int primary key);
    create table public.orders (
      tenant int, id int, path text, tags text[], at timestamptz default now(), primary key (tenant, id),
      size int constraint "size_102040" references public."sizes_102041",
      constraint "path_102040" check (path <> ''), constraint "path_in_202401" check (path <> 'old')
    );
    create table public.products (id int primary key, name text);
    alter table public.orders enable row level security;
    create policy own on public.orders to authenticated
      using (tenant = (select (auth.jwt() ->> 'tenant')::int)) with check (tenant = (select (auth.jwt() ->> 'tenant')::int));
    create function public.seen_header() returns text language sql stable
      as $$ select current_setting('request.headers', true)::json ->> 'x-note' $$;
    grant select, insert, update, delete on public.orders, public.products to authenticated, service_role;
    grant execute on function public.seen_header to authenticated;
    insert into public.orders select n % 2, n, 'order ' || n from generate_series(1, 6) as n;
    insert into public.products values (1, 'pen');
    ${distribute("public.orders", "tenant", [102040, 102041])}`,
});
const service = useFixture(() =>
  serve(database, { BASE_SCHEMA: "platform", REST_REQUIRE_APIKEY: "false", PGRST_DB_PLAN_ENABLED: "true" }),
);

const claims = { role: "authenticated", tenant: 1 };
const headers = { authorization: `Bearer ${jwt.sign(claims, SECRET)}`, "content-type": "application/json" };

async function ask(path: string, options: RequestInit = {}) {
  const response = await fetch(`${service.url}${path}`, {
    ...options,
    headers: { ...headers, ...(options.headers as Record<string, string>) },
  });
  return { status: response.status, text: await response.text() };
}

describe("on a distributed database", () => {
  test("policies see the caller: rows of another tenant are neither shown nor written", async () => {
    const { text } = await ask("/rest/v1/orders?select=id&order=id");
    expect(JSON.parse(text)).toEqual([{ id: 1 }, { id: 3 }, { id: 5 }]);
    const written = await ask("/rest/v1/orders", { method: "POST", body: JSON.stringify({ tenant: 0, id: 8 }) });
    expect(written.status).toBe(403);
    const own = await ask("/rest/v1/orders", { method: "POST", body: JSON.stringify({ tenant: 1, id: 7 }) });
    expect(own.status).toBe(201);
    const deleted = await ask("/rest/v1/orders?id=gte.5", {
      method: "DELETE",
      headers: { prefer: "return=representation" },
    });
    expect(JSON.parse(deleted.text).map(({ id }: { id: number }) => id)).toEqual([5, 7]);
  });

  test("rows are changed by the row type of the table, of which Citus needs no list of columns", async () => {
    const body = JSON.stringify({ path: "new", tags: ["a", 'b"c'] });
    const returned = { prefer: "return=representation" };
    const changed = await ask("/rest/v1/orders?id=eq.3&select=id,path,tags", {
      method: "PATCH",
      body,
      headers: returned,
    });
    expect(JSON.parse(changed.text)).toEqual([{ id: 3, path: "new", tags: ["a", 'b"c'] }]);
    const plan = await ask("/rest/v1/orders?id=eq.3", {
      method: "PATCH",
      body,
      headers: {
        accept: "application/vnd.pgrst.plan+text; options=verbose",
        authorization: `Bearer ${jwt.sign({ role: "service_role" }, SECRET)}`,
      },
    });
    expect(plan.text).toContain("json_populate_record");
  });

  test("an upsert calls no function where rows are merged, which Citus would refuse", async () => {
    const upsert = (row: object, accept: string) =>
      ask("/rest/v1/orders", {
        method: "POST",
        body: JSON.stringify(row),
        headers: {
          accept,
          prefer: "resolution=merge-duplicates, return=representation",
          authorization: `Bearer ${jwt.sign({ role: "service_role" }, SECRET)}`,
        },
      });
    const plan = await upsert({ tenant: 1, id: 3, path: "merged" }, "application/vnd.pgrst.plan+text; options=verbose");
    expect(plan.text).toContain("Conflict Resolution: UPDATE");
    expect(plan.text).not.toContain("Conflict Filter");
    const merged = await upsert({ tenant: 1, id: 1, path: "merged" }, "application/json");
    expect([merged.status, JSON.parse(merged.text)]).toMatchObject([201, [{ id: 1, path: "merged" }]]);
  });

  test("errors name tables and constraints without the numbers of shards", async () => {
    const refusal = async (row: object) =>
      JSON.parse((await ask("/rest/v1/orders", { method: "POST", body: JSON.stringify(row) })).text);
    expect(await refusal({ tenant: 1, id: 9, path: "" })).toMatchObject({
      message: 'new row for relation "orders" violates check constraint "path"',
    });
    expect(await refusal({ tenant: 1, id: 9, size: 4 })).toMatchObject({
      message: 'insert or update on table "orders" violates foreign key constraint "size"',
      details: expect.stringMatching(/is not present in table "sizes"\.$/),
    });
    expect(await refusal({ tenant: 1, id: 9, path: "old" })).toMatchObject({
      message: 'new row for relation "orders" violates check constraint "path_in_202401"',
    });
  });

  test("the description of the interface names the column whose requests are sent to one shard", async () => {
    const { text } = await ask("/rest/v1/", { headers: { accept: "application/openapi+json" } });
    expect(JSON.parse(text).definitions.orders.properties.tenant.description).toContain("tenant=eq.…");
    expect(text.match(/distributed by this column/g)).toHaveLength(1);
  });

  test("a value of a request ends neither its setting nor the statement", async () => {
    const note = String.raw`it's \' "quoted"; drop table public.orders --`;
    expect(await ask("/rest/v1/rpc/seen_header", { headers: { "x-note": note } })).toEqual({
      status: 200,
      text: JSON.stringify(note),
    });
  });

  test("a read of a distributed table is not live, with the reason, and one of another table is", async () => {
    const stream = { headers: { accept: "text/event-stream" } };
    const refused = await ask("/rest/v1/orders?select=id", stream);
    expect(refused.status).toBe(400);
    expect(refused.text).toContain("orders is distributed by Citus, and changes of its rows do not reach this server");
    const shape = await ask("/v1/shape?table=orders&offset=-1");
    expect([shape.status, shape.text]).toEqual([400, expect.stringContaining("distributed by Citus")]);
    const abort = new AbortController();
    const live = await fetch(`${service.url}/rest/v1/products`, {
      headers: { ...headers, ...stream.headers },
      signal: abort.signal,
    });
    expect(live.status).toBe(200);
    abort.abort();
  });

  test("changes of a distributed table are refused to subscribers, and those of another table arrive", async () => {
    const client = await clientOf(service.url, claims);
    const said = async (table: string) => {
      const system = new Inbox<{ readonly status: string; readonly message: string }>();
      const channel = client
        .channel(table)
        .on("postgres_changes", { event: "*", schema: "public", table }, () => {})
        .on("system", {}, system.put);
      await subscribed(channel);
      return (await system.count(1))[0]!;
    };
    expect(await said("orders")).toMatchObject({
      status: "error",
      message: expect.stringContaining("Unable to subscribe to changes"),
    });
    expect(await said("products")).toMatchObject({ status: "ok" });
    await client.realtime.disconnect();
  });
});
