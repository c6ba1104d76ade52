import { rm } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { runningCluster } from "../../cluster/embedded/cluster.ts";
import { withClient } from "../../postgres/client/with-client.ts";
import { anonKey } from "../realtime/service.ts";
import { MAY_MOUNT, mountSmallDisk, type SmallDisk, saySkipped } from "../small-disk.ts";
import { until } from "../until.ts";
import { documentedAnswers, rowOf } from "./documented.ts";
import { type ServiceProcess, startServiceProcess } from "./service-process.ts";

saySkipped("A full disk below Postgres");

let disk: SmallDisk;
let folder: string;
let service: ServiceProcess;
const acknowledged: number[] = [];
let last = 0;

describe.runIf(MAY_MOUNT)("a full disk", () => {
  beforeAll(async () => {
    disk = await mountSmallDisk("160m");
    folder = disk.folder;
    service = await startServiceProcess({ DATA_DIR: join(folder, "data") });
    await asOwner(`
      create table public.marks (id bigint primary key, note text);
      alter table public.marks alter note set storage external;
      grant select, insert (id, note) on public.marks to anon`);
    while (acknowledged.length < 100) await write("short");
  });
  afterAll(async () => {
    await service.kill();
    await until(async () => (await runningCluster({ dataDir: join(folder, "data") })) === null);
    await disk[Symbol.asyncDispose]();
  });

  test("refuses writes, serves reads, and recovers when there is space", async () => {
    const name = "The disk is full: no space for rows";
    const refusals = new Map<string, number>();
    const long = "x".repeat(1_000_000);
    for (let refused = 0; refused < 20; ) {
      const refusal = await write(long);
      if (refusal === null) continue;
      refused++;
      refusals.set(refusal, (refusals.get(refusal) ?? 0) + 1);
    }
    expect((await read()).status).toBe(200);
    await expectRepaired(name, refusals, async () => disk.resize("300m"));
  });

  test("stops Postgres if there is no space for the WAL, and it restarts by itself when there is", async () => {
    const name = "The disk is full: no space for the WAL";
    await disk.fill("ballast");
    const fill = "select pg_logical_emit_message(false, 'fill', repeat('x', 1000000)) from generate_series(1, 100)";
    await expect(asOwner(fill)).rejects.toThrow();
    const refusals = new Map<string, number>();
    await until(async () => {
      const refusal = await write("short");
      if (refusal !== null) refusals.set(refusal, (refusals.get(refusal) ?? 0) + 1);
      return service.printed().includes("could not be started");
    });
    expect(service.printed()).toContain("No space left on device");
    await expectRepaired(name, refusals, () => rm(join(folder, "ballast")));
  });
});

async function expectRepaired(
  name: string,
  refusals: ReadonlyMap<string, number>,
  repair: () => Promise<unknown>,
): Promise<void> {
  await repair();
  const fixed = performance.now();
  await until(async () => (await write("short")) === null);
  const recoveryMs = performance.now() - fixed;
  const rows = await asOwner("select id from marks");
  const stored = new Set(rows.map(({ id }) => Number(id)));
  const lost = acknowledged.filter((id) => !stored.has(id));
  console.log(rowOf(name, refusals, recoveryMs, acknowledged.length, lost.length));
  expect(await documentedAnswers(name)).toEqual(expect.arrayContaining([...refusals.keys()]));
  expect(refusals.size).toBeGreaterThan(0);
  expect(lost).toEqual([]);
  expect(service.child.exitCode).toBeNull();
}

/** Null when it is acknowledged. */
async function write(note: string): Promise<string | null> {
  const id = ++last;
  const response = await fetch(`${service.url}/rest/v1/marks`, {
    method: "POST",
    headers: { apikey: anonKey, "Content-Type": "application/json" },
    body: JSON.stringify({ id, note }),
  });
  if (!response.ok) return `${response.status} ${((await response.json()) as { code: string }).code}`;
  if (note.length < 1_000) acknowledged.push(id);
  return null;
}

function read(): Promise<Response> {
  return fetch(`${service.url}/rest/v1/marks?select=id&limit=1`, { headers: { apikey: anonKey } });
}

async function asOwner(statement: string): Promise<{ id: string }[]> {
  const urlOf = await runningCluster({ dataDir: join(folder, "data") });
  return withClient(urlOf!("postgres", "content"), async (client) => (await client.query(statement)).rows);
}
