import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import jwt from "jsonwebtoken";
import pg from "pg";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { cloneDatabase, type TestDatabase } from "../../database.ts";

const REPOSITORY = join(import.meta.dirname, "../../..");
const SECRET = "a secret that is long enough to sign with";
const GATE = 99;
const PATIENCE = { timeout: 120_000, interval: 100 };

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

let database: TestDatabase;
let owner: pg.Client;
const children: ChildProcess[] = [];

beforeAll(async () => {
  database = await cloneDatabase();
  owner = new pg.Client({ connectionString: database.ownerUrl });
  await owner.connect();
  await owner.query(FUNCTIONS);
});
afterAll(async () => {
  for (const child of children) child.kill("SIGKILL");
  await owner.end();
  await database.drop();
});

type Gateway = { readonly url: string; kill(): Promise<void>; stop(): Promise<number> };

async function startGateway(): Promise<Gateway> {
  const child = spawn(process.execPath, [join(REPOSITORY, "server.ts")], {
    cwd: REPOSITORY,
    env: {
      PATH: process.env.PATH,
      PORT: "0",
      LOG_LEVEL: "silent",
      DATABASE_URL: database.url,
      OWNER_DATABASE_URL: database.ownerUrl,
      JWT_SECRET: SECRET,
      DRAIN_TIMEOUT_SECONDS: "1",
    },
    stdio: ["ignore", "pipe", "inherit"],
  });
  children.push(child);
  let printed = "";
  child.stdout.on("data", (chunk) => (printed += chunk));
  const url = await vi.waitFor(() => {
    expect(printed).toContain("ready in");
    return /address +(\S+)/.exec(printed)![1]!;
  }, PATIENCE);
  return {
    url,
    async kill() {
      child.kill("SIGKILL");
      await once(child, "exit");
    },
    async stop() {
      child.kill("SIGTERM");
      const [code] = await once(child, "exit");
      return code;
    },
  };
}

const apikey = jwt.sign({ role: "service_role" }, SECRET);
const headers = { apikey, Authorization: `Bearer ${apikey}`, "Content-Type": "application/json" };

async function leave(url: string, note: string): Promise<string> {
  const body = JSON.stringify({ note });
  const sent = { method: "POST", headers: { ...headers, Prefer: "respond-async" }, body };
  const response = await fetch(`${url}/rest/v1/rpc/note_twice`, sent);
  expect(response.status).toBe(202);
  return ((await response.json()) as { taskId: string }).taskId;
}

async function statusOf(taskId: string): Promise<string> {
  const { rows } = await owner.query("select status from private.tasks where id = $1", [taskId]);
  return rows[0].status;
}

async function statesOf(taskIds: readonly string[]): Promise<string[]> {
  const { rows } = await owner.query("select status from private.tasks where id = any($1)", [taskIds]);
  return rows.map(({ status }) => status);
}

async function notesOf(note: string): Promise<number> {
  return (await owner.query("select from public.ledger where note = $1", [note])).rowCount ?? 0;
}

describe("a gateway that is killed", () => {
  test("loses no task and does none twice: what it was at is done by another one, all of it or nothing", async () => {
    const first = await startGateway();
    await owner.query("select pg_advisory_lock($1)", [GATE]);
    const notes = Array.from({ length: 7 }, (_, index) => `note ${index}`);
    const ids: string[] = [];
    for (const note of notes) ids.push(await leave(first.url, note));
    // Four are under way, the others wait.
    await vi.waitFor(async () => {
      const states = await statesOf(ids);
      expect(states.filter((status) => status === "running")).toHaveLength(4);
    }, PATIENCE);
    await first.kill();

    const second = await startGateway();
    await owner.query("select pg_advisory_unlock($1)", [GATE]);
    await vi.waitFor(async () => {
      const states = await statesOf(ids);
      expect(states).toEqual(ids.map(() => "done"));
    }, PATIENCE);
    for (const note of notes) expect(await notesOf(note)).toBe(2);

    const response = await fetch(`${second.url}/api/v1/tasks/${ids[0]}`, { headers });
    expect(await response.json()).toMatchObject({ status: "done", result: 2 });
  });
});

describe("a gateway that is stopped", () => {
  test("leaves a task that would take too long to another one, and ends in good order", async () => {
    const first = await startGateway();
    await owner.query("select pg_advisory_lock($1)", [GATE]);
    const taskId = await leave(first.url, "a long note");
    await vi.waitFor(async () => expect(await statusOf(taskId)).toBe("running"), PATIENCE);
    expect(await first.stop()).toBe(0);
    expect(await statusOf(taskId)).toBe("running");

    await startGateway();
    await owner.query("select pg_advisory_unlock($1)", [GATE]);
    await vi.waitFor(async () => expect(await statusOf(taskId)).toBe("done"), PATIENCE);
    expect(await notesOf("a long note")).toBe(2);
  });
});
