import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import jwt from "jsonwebtoken";
import pg from "pg";
import { beforeAll, describe, expect, test } from "vitest";
import { cloneDatabase, useDatabase } from "../../database.ts";
import { useFixture } from "../../fixture.ts";
import { startGateway, workersOf } from "../../program.ts";
import { SECRET } from "../../secret.ts";
import { serve, useService } from "../../serve.ts";
import { until } from "../../until.ts";

const database = useDatabase();
const owner = useFixture(() => connect());
beforeAll(() =>
  owner.query(`
    create table public.counters (id integer primary key, amount integer);
    insert into public.counters values (1, 0);
    grant select on public.counters to anon;
    create function public.wait(seconds float8) returns text language sql volatile
      return (select 'waited' from pg_sleep(seconds));
    grant execute on function public.wait to anon;`),
);
const service = useService({
  database,
  settings: {
    STUDIO: "administrators",
    SLOW_QUERY_MS: "200",
    SCHEDULES: "false",
    WEBHOOKS: "false",
  },
});

// biome-ignore lint/suspicious/noExplicitAny: what a route answers is what its test says.
type Json = { readonly [name: string]: any };

async function connect(name = "a test"): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: database.ownerUrl, application_name: name });
  await client.connect();
  return client;
}

const tokenOf = (claims: object) => `Bearer ${jwt.sign(claims, SECRET)}`;

async function send(method: string, path: string, body?: object, claims: object | null = { role: "admin" }) {
  const response = await fetch(service.url + path, {
    method,
    headers: { ...(claims && { Authorization: tokenOf(claims) }), "Content-Type": "application/json" },
    ...(body && { body: JSON.stringify(body) }),
  });
  return { status: response.status, body: (await response.json()) as Json };
}

const running = async () => (await send("GET", "/admin/v1/running")).body;
const sessionOf = async (application: string): Promise<Json | undefined> =>
  (await running()).database.sessions.find((each: Json) => each.application === application);
const callWait = (seconds: number) =>
  fetch(`${service.url}/rest/v1/rpc/wait`, {
    method: "POST",
    headers: { apikey: jwt.sign({ role: "anon" }, SECRET), "Content-Type": "application/json" },
    body: JSON.stringify({ seconds }),
  });

describe("what runs is shown to administrators only:", () => {
  test.each([
    ["GET", "/admin/v1/running"],
    ["POST", "/admin/v1/running/cancel"],
  ])("%s %s refuses everybody else", async (method, path) => {
    const body = method === "POST" ? { pid: 1 } : undefined;
    const refused = [null, { role: "authenticated" }, { role: "service_role" }];
    const responses = await Promise.all(refused.map((claims) => send(method, path, body, claims)));
    expect(responses.map(({ status }) => status)).toEqual([401, 403, 403]);
  });
});

describe("what the service does", () => {
  test("is counted by interface and status, with percentiles, once somebody has asked", async () => {
    await running();
    const read = () => fetch(`${service.url}/users`).then((response) => response.status);
    const intervals = async (): Promise<Json[]> => (await running()).requests.intervals;
    await until(async () => {
      expect(await read()).toBe(200);
      return (await intervals()).some(({ interfaces }) => interfaces.resource !== undefined);
    });
    await until(async () => (await intervals()).some(({ interfaces }) => interfaces.admin !== undefined));
    const found = (await intervals()).find(({ interfaces }) => interfaces.resource !== undefined)!;
    expect(Object.keys(found.interfaces.resource.statuses)).toEqual(["200"]);
    expect(found.interfaces.resource.p99_ms).toBeGreaterThanOrEqual(found.interfaces.resource.p50_ms);
    expect(found.p50_ms).toBeGreaterThan(0);
    const { body } = await send("GET", `/admin/v1/running?since=${(await intervals()).at(-1)!.at}`);
    expect(body.requests.intervals.length).toBeLessThan((await intervals()).length);
  });

  test("is measured at the end of each interval, also while nobody asks", async () => {
    const samples = async (query = ""): Promise<Json[]> =>
      (await send("GET", `/admin/v1/running${query}`)).body.samples;
    await until(async () => {
      expect((await fetch(`${service.url}/users`)).status).toBe(200);
      const all = await samples();
      return all.length > 1 && all.some(({ connections }) => connections > 0);
    });
    const [first, second] = await samples();
    // An interval is left out if the process is busy for longer.
    expect((Date.parse(second!.at) - Date.parse(first!.at)) % 10_000).toBe(0);
    expect(Date.parse(second!.at)).toBeGreaterThan(Date.parse(first!.at));
    expect(first!.memory_bytes).toBeGreaterThan(1e7);
    expect(first!.processor_cores).toBeGreaterThanOrEqual(0);
    expect(first).toMatchObject({ sockets: 0, channels: 0, subscriptions: 0 });
    expect((await samples(`?since=${first!.at}`))[0]!.at).toBe(second!.at);
  });

  test("has processes, pools, sockets and errors by code", async () => {
    expect((await fetch(`${service.url}/users/999999999`)).status).toBe(404);
    const answer = await running();
    expect(answer.processes).toMatchObject([{ pid: process.pid }]);
    expect(answer.processes[0].memory_bytes).toBeGreaterThan(answer.processes[0].heap_bytes);
    expect(answer.errors.USER_NOT_FOUND).toBeGreaterThan(0);
    expect(answer.pools.map(({ name }: Json) => name)).toContain("read");
    expect(answer.realtime).toEqual({ sockets: 0, channels: 0, subscriptions: 0 });
    expect(answer.replicas).toEqual([]);
    expect(answer.tasks).toMatchObject({ queued: 0, running: 0, failed: 0, tasks: [] });
  });

  test("has the statements that were slow, where pg_stat_statements is not there", async () => {
    expect((await callWait(0.3)).status).toBe(200);
    const { slow_statements: slow } = await running();
    expect(slow).toMatchObject({ source: "service", least_ms: 200 });
    const waited = slow.statements.find(({ statement }: Json) => statement.includes("wait"));
    expect(waited).toMatchObject({ role: "anon", interface: "table", calls: 1 });
    expect(waited.max_ms).toBeGreaterThan(300);
  });

  test("has the schedules, with their next and last run and what runs now", async () => {
    await owner.query(`
      insert into api.schedules (name, cron, time_zone, function, arguments, role)
        values ('nightly', '30 3 * * *', 'Europe/Berlin', 'public.wait', '{"seconds": 1}', 'anon');
      insert into api.schedules (name, cron, function, arguments, role, is_enabled)
        values ('paused', '@daily', 'public.wait', '{"seconds": 1}', 'anon', false);
      update api.schedules set next_run_at = '2030-01-02T02:30Z';
      insert into api.schedule_runs (schedule, planned_at, status, started_at, finished_at, error) values
        ('nightly', now() - interval '2 days', 'done', now() - interval '2 days', now() - interval '2 days', null),
        ('nightly', now() - interval '1 day', 'failed', now() - interval '10 s', now() - interval '8 s', '{"message": "No rows are left"}'),
        ('nightly', now(), 'running', now(), null, null)`);
    await until(async () => (await running()).schedules?.length === 2);
    const [nightly, paused] = (await running()).schedules;
    expect(nightly).toMatchObject({
      ...{
        name: "nightly",
        cron: "30 3 * * *",
        time_zone: "Europe/Berlin",
        function: expect.stringContaining("public.wait"),
      },
      is_enabled: true,
      next_run_at: "2030-01-02T02:30:00.000Z",
      last_run: { status: "failed", milliseconds: 2000, error: { message: "No rows are left" } },
      current_run: { status: "running", started_at: expect.any(String) },
    });
    expect(paused).toMatchObject({ name: "paused", is_enabled: false, next_run_at: null, last_run: null });
    await owner.query("delete from api.schedules");
  });

  test("has the webhooks, with what waits and is dead, and without the secrets of their addresses", async () => {
    await owner.query(`
      insert into api.webhooks (name, table_name, url, role, is_enabled) values
        ('idle', 'counters', 'https://hooks.example.com', 'service_role', true),
        ('orders', 'counters', 'https://hooks.example.com:8443/T0/hunter2?token=hunter3', 'service_role', true);
      update api.webhooks set disabled_because = 'The response has the status 410', is_enabled = false where name = 'orders';
      insert into content_service.webhook_leases (webhook_id, expires_at, delivered_at)
        select id, '-infinity', '2026-01-01T00:00Z' from api.webhooks where name = 'orders';
      insert into content_service.webhook_deliveries (webhook_id, type, key, new, recorded_at, state, last_error)
        select id, 'INSERT', '1', '{}', recorded_at::timestamptz, state, error
        from api.webhooks, (values ('2026-01-02T00:00Z', 'pending', null), ('2026-01-03T00:00Z', 'pending', null),
          ('2026-01-01T00:00Z', 'dead', 'The response has the status 500')) as change (recorded_at, state, error)
        where name = 'orders'`);
    await until(async () => (await running()).webhooks?.length === 2);
    const { webhooks } = await running();
    expect(webhooks).toEqual([
      {
        ...{ name: "idle", table: "public.counters", events: ["INSERT", "UPDATE", "DELETE"], state: "enabled" },
        ...{ origin: "https://hooks.example.com", disabled_because: null, pending: 0, oldest_at: null, dead: 0 },
        ...{ delivered_at: null, last_error: null },
      },
      {
        ...{ name: "orders", table: "public.counters", events: ["INSERT", "UPDATE", "DELETE"], state: "disabled" },
        ...{ origin: "https://hooks.example.com:8443", disabled_because: "The response has the status 410" },
        ...{ pending: 2, oldest_at: "2026-01-02T00:00:00.000Z", dead: 1, delivered_at: "2026-01-01T00:00:00.000Z" },
        last_error: "The response has the status 500",
      },
    ]);
    expect(JSON.stringify(await running())).not.toMatch(/hunter|whsec/);
    await owner.query("delete from api.webhooks");
  });

  test("refuses a time that is none", async () => {
    expect((await send("GET", "/admin/v1/running?since=x")).status).toBe(400);
  });
});

describe("what the database does", () => {
  test("has the running statements, with the request that they belong to", async () => {
    const waiting = callWait(30);
    await until(async () => (await sessionOfRequest()) !== undefined);
    const session = (await sessionOfRequest())!;
    expect(session).toMatchObject({ state: "active", role: "authenticator", waits_for: [] });
    expect(session.request).toMatchObject({ interface: "table", role: "anon" });
    const cancelled = await send("POST", "/admin/v1/running/cancel", {
      pid: session.pid,
      started_at: session.started_at,
    });
    expect([cancelled.status, cancelled.body.pid]).toEqual([200, session.pid]);
    expect((await waiting).ok).toBe(false);
  });

  async function sessionOfRequest(): Promise<Json | undefined> {
    const { database: activity } = await running();
    return activity.sessions.find(({ request, statement }: Json) => request && statement?.includes("wait"));
  }

  test("has the locks, and who waits for whom", async () => {
    const [first, second, third] = [await connect("first"), await connect("second"), await connect("third")];
    try {
      await first.query("begin; update public.counters set amount = 1");
      const waits = second.query("update public.counters set amount = amount + 1");
      await until(async () => ((await sessionOf("second"))?.waits_for ?? []).length > 0);
      const waitsForBoth = third.query("begin; lock table public.counters");
      await until(async () => ((await sessionOf("third"))?.waits_for ?? []).length > 0);
      const [blocker, waiter, last] = [
        (await sessionOf("first"))!,
        (await sessionOf("second"))!,
        (await sessionOf("third"))!,
      ];
      expect(blocker).toMatchObject({ state: "idle in transaction", waits_for: [] });
      expect(waiter).toMatchObject({ state: "active", statement: "update public.counters set amount = amount + 1" });
      expect(waiter.lock.mode).toMatch(/Lock$/);
      expect(waiter.waits_for).toEqual([blocker.pid]);
      expect(last).toMatchObject({
        lock: { type: "relation", mode: "AccessExclusiveLock", relation: "public.counters" },
      });
      expect([...last.waits_for].sort()).toEqual([blocker.pid, waiter.pid].sort());
      await first.query("commit");
      await Promise.all([waits, waitsForBoth]);
    } finally {
      await Promise.all([first.end(), second.end(), third.end()]);
    }
  });

  test("has no passwords that others set", async () => {
    const client = await connect("a password");
    try {
      await client.query("begin; do $$ begin create role secretive password 'hunter2'; end $$");
      await until(async () => (await sessionOf("a password"))?.state === "idle in transaction");
      expect((await sessionOf("a password"))!.statement).toMatch(/^begin;\s*do …$/);
    } finally {
      await client.end();
    }
  });

  test("has the connections by application and state", async () => {
    const { database: activity } = await running();
    expect(activity.max_connections).toBe(300);
    expect(activity.sees_all).toBe(true);
    expect(activity.connections).toContainEqual({ application: "a test", state: "idle", count: 1 });
  });
});

describe("a statement is cancelled", () => {
  test("with a record of who did it", async () => {
    const client = await connect("to cancel");
    try {
      const sleeping = client.query("select pg_sleep(60)").catch((error: pg.DatabaseError) => error.code);
      await until(async () => (await sessionOf("to cancel"))?.state === "active");
      const { pid } = (await sessionOf("to cancel"))!;
      const { status, body } = await send("POST", "/admin/v1/running/cancel", { pid });
      expect([status, body.application, body.statement]).toEqual([200, "to cancel", "select pg_sleep(60)"]);
      expect(await sleeping).toBe("57014");
      const { rows } = await owner.query(
        "select details from auth.audit_log where event = 'studio.statement_cancelled' order by id desc limit 1",
      );
      expect(rows[0].details).toMatchObject({ pid, application: "to cancel" });
    } finally {
      await client.end();
    }
  });

  test("not if the session runs none, or another one by now", async () => {
    const client = await connect("idle");
    try {
      const { rows } = await client.query("select pg_backend_pid() as pid");
      const idle = await send("POST", "/admin/v1/running/cancel", { pid: rows[0].pid });
      expect([idle.status, idle.body.error.code]).toEqual([409, "STATEMENT_ENDED"]);
      const sleeping = client.query("select pg_sleep(0.5)");
      await until(async () => (await sessionOf("idle"))?.state === "active");
      const stale = { pid: rows[0].pid, started_at: "2026-01-01T00:00:00Z" };
      expect((await send("POST", "/admin/v1/running/cancel", stale)).status).toBe(409);
      await sleeping;
    } finally {
      await client.end();
    }
  });

  test("not in another database, and not without a number", async () => {
    const other = await cloneDatabase("empty");
    const client = new pg.Client({ connectionString: other.ownerUrl });
    await client.connect();
    try {
      const { rows } = await client.query("select pg_backend_pid() as pid");
      expect((await send("POST", "/admin/v1/running/cancel", { pid: rows[0].pid })).status).toBe(404);
    } finally {
      await client.end();
      await other.drop();
    }
    for (const body of [{}, { pid: "1" }, { pid: 1e12 }, { pid: 1, started_at: "x" }]) {
      expect((await send("POST", "/admin/v1/running/cancel", body)).status).toBe(400);
    }
  });
});

test("requests of an earlier process are found in the log of requests, without their query strings", async () => {
  const folder = await mkdtemp(join(tmpdir(), "request-log-"));
  const settings = { STUDIO: "administrators", DATA_DIR: folder, REQUEST_LOG_MB: "1" };
  const find = async (url: string, query: string) => {
    const headers = { Authorization: tokenOf({ role: "admin" }) };
    return (await (await fetch(`${url}/admin/v1/requests?${query}`, { headers })).json()) as Json;
  };
  const logged = async () => {
    const files = await readdir(join(folder, "requests"));
    return (await Promise.all(files.map((name) => readFile(join(folder, "requests", name), "utf8")))).join("");
  };
  try {
    const first = await serve(database, settings);
    await fetch(`${first.url}/rest/v1/nowhere?secret=hidden`);
    await first.stop();
    const second = await serve(database, settings);
    try {
      const { requests, log_megabytes: megabytes } = await find(second.url, "search=nowhere&interface=table");
      expect(requests).toMatchObject([{ method: "GET", path: "/rest/v1/nowhere", status: 401, interface: "table" }]);
      expect(megabytes).toBe(1);
      // A request that is among the last ones and in the log is found once.
      await fetch(`${second.url}/rest/v1/somewhere`);
      await until(async () => (await logged()).includes("/rest/v1/somewhere"));
      expect((await find(second.url, "search=somewhere")).requests).toHaveLength(1);
    } finally {
      await second.stop();
    }
    expect(await logged()).toContain("/rest/v1/nowhere");
    expect(await logged()).not.toContain("hidden");
  } finally {
    await rm(folder, { recursive: true });
  }
});

describe("several processes", () => {
  const header = { Authorization: tokenOf({ role: "admin" }) };

  test("are shown together, with the e-mails that each has sent, whichever answers", async () => {
    const mailDir = await mkdtemp(join(tmpdir(), "mail-"));
    const settings = { WEB_CONCURRENCY: "2", STUDIO: "administrators", LOG_LEVEL: "error", MAIL_DIR: mailDir };
    const gateway = await startGateway(database, settings);
    // A connection each: they go to the workers in turn.
    const ask = async (path: string, body?: object) => {
      const key = jwt.sign({ role: "service_role" }, SECRET);
      const headers = { ...(body ? { Authorization: `Bearer ${key}`, apikey: key } : header), Connection: "close" };
      const response = await fetch(gateway.url + path, {
        method: body ? "POST" : "GET",
        headers: { ...headers, "Content-Type": "application/json" },
        ...(body && { body: JSON.stringify(body) }),
      });
      return (await response.json()) as Json;
    };
    try {
      await until(async () => (await workersOf(gateway)) === 2);
      const { processes } = await ask("/admin/v1/running");
      // Any worker that answers searches the requests of both.
      await Promise.all(Array.from({ length: 8 }, (_, index) => ask(`/users?searched-${index}`)));
      const pathsFound = async () => (await ask("/admin/v1/requests?search=/users&status=4")).requests.length;
      for (let worker = 0; worker < 2; worker++) await until(async () => (await pathsFound()) === 8);
      expect(new Set(processes.map(({ pid }: Json) => pid)).size).toBe(2);
      const largest = Math.max(...processes.map(({ memory_bytes: memory }: Json) => memory));
      const lastSample = async () => (await ask("/admin/v1/running")).samples.at(-1);
      for (let worker = 0; worker < 2; worker++) {
        await until(async () => ((await lastSample())?.memory_bytes ?? 0) > 1.2 * largest);
      }

      const addresses = Array.from({ length: 6 }, (_, index) => `invited-${index}@example.org`);
      for (const email of addresses) expect((await ask("/auth/v1/invite", { email })).email).toBe(email);
      const recipients = async () => (await ask("/admin/v1/mails")).mails.map(({ to }: Json) => to).sort();
      await until(async () => (await recipients()).length === addresses.length);
      for (let worker = 0; worker < 2; worker++) expect(await recipients()).toEqual(addresses);
    } finally {
      await gateway.kill();
      await rm(mailDir, { recursive: true });
    }
  });
});
