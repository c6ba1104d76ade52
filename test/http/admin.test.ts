import { readFile } from "node:fs/promises";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { readConfig } from "../../config/config.ts";
import { type AdminServer, openAdminServer } from "../../http/admin.ts";
import { makeLogger } from "../../runtime/log/log.ts";
import { type Service, startService } from "../../service/wiring/service.ts";
import { useClient, useDatabase } from "../database.ts";
import { SECRET } from "../secret.ts";
import { until } from "../until.ts";

let service: Service | null = null;
let admin: AdminServer;

const database = useDatabase({
  sql: `
    create table public.secrets (id int primary key, word text);
    insert into public.secrets values (1, 'xyzzy');
    grant select on public.secrets to anon;
    create function public.wait_for_lock() returns void language sql as 'select pg_advisory_xact_lock(4711)';
    grant execute on function public.wait_for_lock to anon;
  `,
});
const owner = useClient(database.ownerUrl);
beforeAll(async () => {
  const { config } = readConfig({
    PORT: "0",
    ADMIN_PORT: "0",
    LOG_LEVEL: "silent",
    RATE_LIMIT: "20",
    REST_REQUIRE_APIKEY: "false",
    DATABASE_URL: database.url,
    OWNER_DATABASE_URL: database.ownerUrl,
    JWT_SECRET: SECRET,
  });
  const log = makeLogger(config);
  admin = await openAdminServer({ config, log, service: () => service?.operations ?? null });
  expect(await statusOf("/ready")).toBe(503);
  expect(await statusOf("/live")).toBe(200);
  const giveUp = (reason: Error) => {
    throw reason;
  };
  service = await startService(config, { log, report: () => {}, onFatalError: giveUp });
});
afterAll(async () => {
  await service?.stop();
  await admin.close();
});

const statusOf = async (path: string) => (await fetch(`${admin.url}${path}`)).status;
const ask = (path: string, init: RequestInit = {}) => fetch(`${service!.url}${path}`, init);

/** The value of the first sample that has these labels. */
async function metric(name: string, labels: Readonly<Record<string, string>> = {}): Promise<number> {
  const text = await (await fetch(`${admin.url}/metrics`)).text();
  const lines = text.split("\n").filter((line) => line.startsWith(`content_service_${name}`));
  const found = lines.find((line) =>
    Object.entries(labels).every(([key, value]) => line.includes(`${key}="${value}"`)),
  );
  return Number(found?.split(" ").at(-1) ?? 0);
}

describe("the operators' port", () => {
  test("is ready when the service is, and has no other routes", async () => {
    expect(await statusOf("/ready")).toBe(200);
    expect(await statusOf("/live")).toBe(200);
    expect(await statusOf("/elsewhere")).toBe(404);
    expect((await fetch(`${admin.url}/live`, { method: "POST" })).status).toBe(405);
  });

  test("counts requests by route, method and status, never by URL, and has metrics of Postgres", async () => {
    await ask("/rest/v1/secrets?word=eq.xyzzy");
    await ask("/rest/v1/secrets?word=eq.plugh");
    await ask("/rest/v1/nowhere");
    await ask("/api/v1/secrets/1");
    const body = JSON.stringify({ query: "{ __typename }" });
    const headers = { "content-type": "application/json" };
    for (let time = 0; time < 2; time++) await ask("/graphql", { method: "POST", headers, body });

    const table = { interface: "table", route: "/rest/v1/{table}", method: "GET" };
    await until(async () => (await metric("http_requests_total", { ...table, status: "200" })) === 2);
    expect(await metric("http_requests_total", { ...table, status: "404" })).toBe(1);
    expect(await metric("http_request_duration_seconds_count", table)).toBe(3);
    expect(await metric("errors_total", { code: "PGRST205" })).toBe(1);
    expect(await metric("cache_requests_total", { cache: "forms", result: "hit" })).toBe(1);
    expect(await metric("cache_requests_total", { cache: "operations", result: "hit" })).toBe(1);
    expect(await metric("database_up")).toBe(1);
    expect(await metric("prepared_statement_uses_total", { result: "hit" })).toBeGreaterThan(0);
    expect(await metric("http_sent_bytes_total")).toBeGreaterThan(500);
    expect(await metric("catalogue_version")).toBeGreaterThan(0);

    const text = await (await fetch(`${admin.url}/metrics`)).text();
    expect(text).toContain("nodejs_eventloop_lag_p99_seconds");
    expect(text).not.toMatch(/xyzzy|secrets|long enough/);
  });

  test("counts live queries and shapes, and what waits for changes of them", async () => {
    const shape = "/v1/shape?table=secrets";
    const first = await ask(`${shape}&offset=-1`);
    await first.text();
    const [handle, offset] = ["electric-handle", "electric-offset"].map((name) => first.headers.get(name));
    expect([await metric("shapes"), await metric("shape_requests_waiting")]).toEqual([1, 0]);
    expect([await metric("live_queries"), await metric("live_results")]).toEqual([1, 1]);
    const runs = await metric("live_runs_total");
    expect(await metric("shape_bytes")).toBeGreaterThan(1_000);
    expect(await metric("live_result_bytes")).toBeGreaterThan(10);
    const waiting = ask(`${shape}&handle=${handle}&offset=${offset}&live=true`);
    await until(async () => (await metric("shape_requests_waiting")) === 1);
    await owner.query("insert into public.secrets values (2, 'x')");
    expect(await (await waiting).text()).toContain('"insert"');
    await owner.query("delete from public.secrets where id = 2");
    expect(await metric("live_runs_total")).toBeGreaterThan(runs);
    expect(await metric("shape_requests_waiting")).toBe(0);
  });

  test("has the metrics that the docs and the alerts name", async () => {
    const text = await (await fetch(`${admin.url}/metrics`)).text();
    const result = new Set([...text.matchAll(/^# TYPE (\w+)/gm)].map(([, name]) => name!));
    const ours = [...result].filter((name) => name.startsWith("content_service_"));
    expect(ours.length).toBeGreaterThan(40);
    const docs = await readFile("docs/observability.md", "utf8");
    expect(ours.filter((name) => !docs.includes(`\`${name.replace("content_service_", "")}\``))).toEqual([]);
    const rules = await readFile("deploy/prometheus-rules.yml", "utf8");
    const watched = [...rules.matchAll(/\b(?:content_service|nodejs)_\w+/g)].map(([name]) => name);
    expect(watched.length).toBeGreaterThan(6);
    expect(watched.filter((name) => !result.has(name))).toEqual([]);
  });

  test("shows the running queries of Postgres, by request and by session", async () => {
    await owner.query("select pg_advisory_lock(4711)");
    const waiting = ask("/rest/v1/rpc/wait_for_lock", { headers: { "x-request-id": "request-17" } });
    const request = async () => (await (await fetch(`${admin.url}/statements`)).json()) as Record<string, unknown>[];
    const ours = async () => (await request()).find(({ request }) => request === "request-17");
    await until(async () => (await ours()) !== undefined);
    const { pid, ...rest } = (await ours())!;
    expect(rest).toMatchObject({
      role: "anon",
      interface: "table",
      statement: expect.stringContaining("wait_for_lock"),
    });
    const waitsFor = async () =>
      (await owner.query("select wait_event from pg_stat_activity where pid = $1", [pid])).rows[0]?.wait_event;
    // It was sent, which is not yet begun.
    await until(async () => (await waitsFor()) === "advisory");
    await owner.query("select pg_advisory_unlock(4711)");
    await waiting;
    await until(async () => (await ours()) === undefined);
  });

  test("counts rate-limited callers", async () => {
    await Promise.all(Array.from({ length: 30 }, () => ask("/rest/v1/secrets")));
    await until(async () => (await metric("http_requests_total", { status: "429" })) > 0);
    expect(await metric("errors_total", { code: "RATE_LIMITED" })).toBeGreaterThan(0);
  });
});
