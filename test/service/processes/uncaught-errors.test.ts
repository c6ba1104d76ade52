import { once } from "node:events";
import { join } from "node:path";
import pg from "pg";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { cloneDatabase, type TestDatabase } from "../../database.ts";
import { type Program, startGateway } from "../../program.ts";
import { anonKey, makeClient, subscribed } from "../../realtime/service.ts";
import { until } from "../../until.ts";

const FAILING_DEPENDENCIES = join(import.meta.dirname, "failing-dependencies.ts");
const WORK = ["change stream", "notifications", "tasks of anonymous callers", "webhooks"];

let database: TestDatabase;
let gateway: Program;
let opened: AsyncDisposableStack;
beforeAll(async () => {
  opened = new AsyncDisposableStack();
  database = await cloneDatabase("content");
  opened.defer(() => database.drop());
  const owner = opened.adopt(new pg.Client({ connectionString: database.ownerUrl }), (client) => client.end());
  await owner.connect();
  await owner.query(`
    create table public.marks (id int primary key);
    grant select, insert on public.marks to anon;
    create function public.wait() returns int language sql as 'select 1 from pg_sleep(3)';
    grant execute on function public.wait to anon`);
  gateway = await startGateway(database, { ADMIN_PORT: "0", NODE_OPTIONS: `--import=${FAILING_DEPENDENCIES}` });
  opened.defer(() => gateway.kill());
});
afterAll(() => opened.disposeAsync());

const health = async () =>
  (await fetch(`${gateway.url}/health`)).json() as Promise<{ readonly status: string; readonly reason?: string }>;

async function readMetric(name: string): Promise<Readonly<Record<string, number>>> {
  const text = await (await fetch(/metrics +(\S+)/.exec(gateway.printed())![1]!)).text();
  const samples = text.matchAll(new RegExp(`^content_service_${name}\\{work="([^"]+)"\\} (\\d+)`, "gm"));
  return Object.fromEntries([...samples].map(([, work, value]) => [work, Number(value)]));
}

describe("uncaught errors of dependencies", () => {
  test("restart the background work that they come from, and end no request", async () => {
    const client = makeClient(gateway.url);
    opened.defer(() => void client.realtime.disconnect());
    const received: unknown[] = [];
    const marks = { event: "INSERT", schema: "public", table: "marks" } as const;
    await subscribed(client.channel("marks").on("postgres_changes", marks, ({ new: row }) => received.push(row)));
    const headers = { apikey: anonKey, "Content-Type": "application/json" };
    const request = fetch(`${gateway.url}/rest/v1/rpc/wait`, { method: "POST", headers });

    const named = new Set<string>();
    await until(async () => {
      gateway.child.kill("SIGWINCH");
      const { reason = "" } = await health();
      for (const work of WORK) if (reason.includes(work)) named.add(work);
      return named.size === WORK.length;
    });
    expect(await (await request).json()).toBe(1);
    await until(async () => (await health()).status === "ok");
    const uncaught = await readMetric("background_work_uncaught_errors_total");
    const restarts = await readMetric("background_work_restarts_total");
    for (const work of WORK) {
      expect(uncaught[work], work).toBeGreaterThan(1);
      expect(restarts[work], work).toBeGreaterThan(0);
    }
    expect(gateway.logged()).toContain("A fault of a dependency");
    expect(gateway.logged()).toContain('"work":"tasks of anonymous callers"');

    let id = 0;
    await until(async () => {
      const body = JSON.stringify({ id: ++id });
      await fetch(`${gateway.url}/rest/v1/marks`, { method: "POST", headers, body });
      return received.length > 0;
    });
  });

  test("that come from no background work end the process with exit code 1 and their stack", async () => {
    const ended = once(gateway.child, "close");
    gateway.child.kill("SIGPROF");
    expect((await ended)[0]).toBe(1);
    expect(gateway.logged()).toMatch(/Error: A fault of nobody\n +at /);
  });
});
