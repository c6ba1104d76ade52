import jwt from "jsonwebtoken";
import { afterAll, describe, expect, test } from "vitest";
import { withClient } from "../../../postgres/client/with-client.ts";
import { useClient, useDatabase } from "../../database.ts";
import { type Program, startGateway, stopped } from "../../program.ts";
import { SECRET } from "../../secret.ts";
import { until } from "../../until.ts";

const GATE = 99;

const FUNCTIONS = `
  create table public.ledger (note text not null);
  alter table public.ledger enable row level security;
  create policy all_all on public.ledger using (true) with check (true);
  grant select, insert on public.ledger to service_role;
  create function public.note_twice(note text) returns bigint language plpgsql set search_path = '' as $$
  begin
    insert into public.ledger values (note);
    perform pg_advisory_xact_lock_shared(${GATE});
    insert into public.ledger values (note);
    return 2;
  end $$;
  grant execute on function public.note_twice to service_role;
`;

const gateways: Program[] = [];

const database = useDatabase({ template: "platform", sql: FUNCTIONS });
const owner = useClient(database.ownerUrl);
afterAll(() => Promise.all(gateways.map((gateway) => gateway.kill())));

async function start(): Promise<Program> {
  const gateway = await startGateway(database, {
    BASE_SCHEMA: "platform",
    DRAIN_TIMEOUT_SECONDS: "1",
    DB_STATEMENT_TIMEOUT_SECONDS: "0",
    DB_LOCK_TIMEOUT_SECONDS: "0",
  });
  gateways.push(gateway);
  return gateway;
}

/** The one gateway that a test leaves to the next one; a new one where there is none. */
const left = async () => gateways.find(({ child }) => child.exitCode === null && child.signalCode === null) ?? start();

const apikey = jwt.sign({ role: "service_role" }, SECRET);
const headers = { apikey, Authorization: `Bearer ${apikey}`, "Content-Type": "application/json" };

async function leave(url: string, note: string): Promise<string> {
  const body = JSON.stringify({ note });
  const sent = { method: "POST", headers: { ...headers, Prefer: "respond-async" }, body };
  const response = await fetch(`${url}/rest/v1/rpc/note_twice`, sent);
  expect(response.status).toBe(202);
  return ((await response.json()) as { taskId: string }).taskId;
}

async function statesOf(taskIds: readonly string[]): Promise<string[]> {
  const { rows } = await owner.query("select status from content_service.tasks where id = any($1)", [taskIds]);
  return rows.map(({ status }) => status);
}

async function notesOf(note: string): Promise<number> {
  return (await owner.query("select from public.ledger where note = $1", [note])).rowCount ?? 0;
}

describe("a gateway that is killed", () => {
  test("loses no task and runs none twice: another gateway runs the interrupted one", async () => {
    const first = await start();
    await owner.query("select pg_advisory_lock($1)", [GATE]);
    const notes = Array.from({ length: 7 }, (_, index) => `note ${index}`);
    const ids: string[] = [];
    for (const note of notes) ids.push(await leave(first.url, note));
    // Four are under way, the others wait.
    await until(async () => (await statesOf(ids)).filter((status) => status === "running").length === 4);
    await first.kill();

    const second = await start();
    await owner.query("select pg_advisory_unlock($1)", [GATE]);
    await until(async () => (await statesOf(ids)).every((status) => status === "done"));
    for (const note of notes) expect(await notesOf(note)).toBe(2);

    const response = await fetch(`${second.url}/api/v1/tasks/${ids[0]}`, { headers });
    expect(await response.json()).toMatchObject({ status: "done", result: 2 });
  });
});

describe("a gateway that is killed while it runs functions that SQL queued", () => {
  test("leaves no part of their effects; another gateway makes them once", async () => {
    const first = await left();
    await owner.query("select pg_advisory_lock($1)", [GATE]);
    const notes = Array.from({ length: 7 }, (_, index) => `queued note ${index}`);
    const { rows } = await owner.query(
      "select content_service.queue_call('service_role', null, 'note_twice', jsonb_build_object('note', note)) as id from unnest($1::text[]) as note",
      [notes],
    );
    const ids = rows.map(({ id }) => id);
    const running = async () => (await statesOf(ids)).filter((status) => status === "running").length;
    await until(async () => (await running()) === 4);
    await first.kill();
    for (const note of notes) expect(await notesOf(note)).toBe(0);

    await start();
    await owner.query("select pg_advisory_unlock($1)", [GATE]);
    await until(async () => (await statesOf(ids)).every((status) => status === "done"));
    for (const note of notes) expect(await notesOf(note)).toBe(2);
  });

  test("runs one that is due while no gateway runs as soon as there is one", async () => {
    await Promise.all(gateways.splice(0).map((gateway) => gateway.kill()));
    const { rows } = await owner.query(
      `select content_service.queue_call('service_role', null, 'note_twice', '{"note": "missed"}', now() + interval '0.1 s') as id`,
    );
    await start();
    await until(async () => (await statesOf([rows[0].id]))[0] === "done");
    expect(await notesOf("missed")).toBe(2);
  });
});

describe("a gateway that is stopped", () => {
  test("leaves a long task to another gateway and shuts down cleanly", async () => {
    const first = await left();
    await owner.query("select pg_advisory_lock($1)", [GATE]);
    const taskId = await leave(first.url, "a long note");
    await until(async () => (await statesOf([taskId]))[0] === "running");
    expect(await stopped(first, "SIGTERM")).toBe(0);
    expect(await statesOf([taskId])).toEqual(["queued"]);

    await start();
    await owner.query("select pg_advisory_unlock($1)", [GATE]);
    await until(async () => (await statesOf([taskId]))[0] === "done");
    expect(await notesOf("a long note")).toBe(2);
  });
});

describe("a database that is temporarily unavailable", () => {
  test("stops no gateway, and running tasks finish when it is back", async () => {
    const gateway = await left();
    await owner.query("select pg_advisory_lock($1)", [GATE]);
    const taskId = await leave(gateway.url, "a lasting note");
    await until(async () => (await statesOf([taskId]))[0] === "running");

    const healthIs = (status: number) => async () => (await fetch(`${gateway.url}/health`)).status === status;
    // Nobody can close the database that they are in.
    const elsewhere = database.ownerUrl.replace(`/${database.name}`, "/postgres");
    const allow = (isOpen: boolean) =>
      withClient(elsewhere, (client) =>
        client.query(`alter database "${database.name}" with allow_connections ${isOpen}`),
      );
    await allow(false);
    await owner.query(
      "select pg_terminate_backend(pid) from pg_stat_activity where datname = $1 and pid <> pg_backend_pid()",
      [database.name],
    );
    await until(healthIs(503));
    await allow(true);
    await owner.query("select pg_advisory_unlock($1)", [GATE]);
    await until(healthIs(200));
    await until(async () => (await statesOf([taskId]))[0] === "done");
    expect(await notesOf("a lasting note")).toBe(2);
  });
});
