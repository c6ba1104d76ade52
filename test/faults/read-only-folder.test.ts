import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { runningCluster } from "../../cluster/embedded/cluster.ts";
import { withClient } from "../../postgres/client/with-client.ts";
import { useFolder } from "../fixture.ts";
import { postmasterOf } from "../postmaster.ts";
import { anonKey } from "../realtime/service.ts";
import { until } from "../until.ts";
import { documentedAnswers, rowOf } from "./documented.ts";
import { type ServiceProcess, startServiceProcess } from "./service-process.ts";

const REFUSALS = 5;

let dataDir: string;
let service: ServiceProcess;
const acknowledged: number[] = [];
let last = 0;

const folder = useFolder("content-service-read-only-", 0o755);
beforeAll(async () => {
  dataDir = join(folder, "data");
  service = await startServiceProcess({ DATA_DIR: dataDir });
  await asOwner(`
    create table public.marks (id bigint primary key);
    grant select, insert (id) on public.marks to anon;
    create table public.done (id bigint primary key);
    create function public.mark(id bigint) returns void language sql security definer as 'insert into public.done values (id)';
    grant execute on function public.mark to anon`);
  while (acknowledged.length < 100) await write();
});
afterAll(async () => {
  setMode("u+w");
  await service.kill();
  await until(async () => (await runningCluster({ dataDir })) === null);
});

const setMode = (mode: string) => void execFileSync("chmod", ["-R", mode, dataDir]);

async function asOwner(statement: string): Promise<{ id: string }[]> {
  const urlOf = await runningCluster({ dataDir });
  return withClient(urlOf!("postgres", "content"), async (client) => (await client.query(statement)).rows);
}

function post(path: string, body: object, headers: Readonly<Record<string, string>> = {}): Promise<Response> {
  return fetch(service.url + path, {
    method: "POST",
    headers: { apikey: anonKey, "Content-Type": "application/json", ...headers },
    body: JSON.stringify(body),
  });
}

/** Null when it is acknowledged. */
async function write(): Promise<string | null> {
  const id = ++last;
  const response = await post("/rest/v1/marks", { id });
  if (!response.ok) return `${response.status} ${((await response.json()) as { code: string }).code}`;
  acknowledged.push(id);
  return null;
}

async function health(): Promise<string> {
  return ((await (await fetch(`${service.url}/health`)).json()) as { status: string }).status;
}

/** The queue runs a task that is queued from now on. */
async function queueWorks(): Promise<void> {
  const queued: number[] = [];
  await until(async () => {
    const id = ++last;
    const { ok } = await post("/rest/v1/rpc/mark", { id }, { Prefer: "respond-async" });
    if (ok) queued.push(id);
    return (await asOwner(`select id from done where id in (0, ${queued.join() || 0})`)).length > 0;
  });
}

/** Sessions keep the files that they have open, so they end then. */
async function makeReadOnly(): Promise<void> {
  const sessions = await asOwner(
    "select pid as id from pg_stat_activity where backend_type = 'client backend' and pid <> pg_backend_pid()",
  );
  setMode("a-w");
  for (const { id } of sessions) trySignal(Number(id), "SIGTERM");
}

/** A session may have ended by itself. */
function trySignal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
  }
}

async function expectRepaired(name: string, refusals: ReadonlyMap<string, number>): Promise<void> {
  setMode("u+w");
  const fixed = performance.now();
  await until(async () => (await write()) === null);
  const recoveryMs = performance.now() - fixed;
  await queueWorks();
  await until(async () => (await health()) === "ok");
  const stored = new Set((await asOwner("select id from marks")).map(({ id }) => Number(id)));
  const lost = acknowledged.filter((id) => !stored.has(id));
  console.log(rowOf(name, refusals, recoveryMs, acknowledged.length, lost.length));
  expect(await documentedAnswers(name)).toEqual(expect.arrayContaining([...refusals.keys()]));
  expect(lost).toEqual([]);
  expect(service.child.exitCode).toBeNull();
}

/** Writes until some writes are refused and the condition holds. */
async function refusedUntil(holds: () => Promise<boolean>): Promise<ReadonlyMap<string, number>> {
  const refusals = new Map<string, number>();
  for (let refused = 0; refused < REFUSALS || !(await holds()); ) {
    const refusal = await write();
    if (refusal === null) continue;
    refused++;
    refusals.set(refusal, (refusals.get(refusal) ?? 0) + 1);
  }
  return refusals;
}

describe("a data folder that becomes read-only", () => {
  test("is told by refusals and /health, and everything continues when it is writable again", async () => {
    await queueWorks();
    await makeReadOnly();
    const refusals = await refusedUntil(async () => (await health()) !== "ok");
    await expectRepaired("The data folder is read-only", refusals);
  });

  test("and in which Postgres cannot start is tried again until it can", async () => {
    await makeReadOnly();
    process.kill(await postmasterOf(dataDir), "SIGKILL");
    const refusals = await refusedUntil(
      async () => service.printed().includes("could not be started") && (await health()) !== "ok",
    );
    await expectRepaired("Postgres is killed, and the data folder is read-only", refusals);
  });
});
