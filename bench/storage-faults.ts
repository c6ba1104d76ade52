// Kills gateways that share a file store at random moments of uploads, moves and deletes, while unused files are collected.

import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type pg from "pg";
import { collectFiles, type FileStore, makeFolderStore, makeS3Store } from "#files";
import type { AsOwner } from "#postgres/database";
import { startGateway } from "./failover/gateway.ts";
import { type FaultySystem, startFaultySystem } from "./faults/system.ts";
import { freePort } from "./measuring/free-port.ts";
import type { Bench } from "./measuring/kind.ts";
import { BUCKET, type FileTraffic, startFileTraffic } from "./storage-faults/file-traffic.ts";

const STORES = { folder: openFolder, s3: openS3 };

const KILLS_PER_ROUND = 100;
const CLIENTS = 6;
const LONGEST_WAIT_MS = 300;
const S3_KEY = { accessKeyId: "S3RVER", secretAccessKey: "S3RVER" };

type FaultedStore = Awaited<ReturnType<typeof openFolder>>;

export const bench: Bench = async ({ rounds, only, print }) => {
  const results: Record<string, Result> = {};
  for (const [name, open] of Object.entries(STORES)) {
    if (only.length > 0 && !only.includes(name)) continue;
    print(`storage-faults: ${name}, ${rounds * KILLS_PER_ROUND} kills, ${CLIENTS} clients, two gateways`);
    await using store = await open();
    results[name] = await killAll(store, rounds * KILLS_PER_ROUND, print);
    print(`  ${JSON.stringify(results[name])}`);
  }
  const isMissed = Object.values(results).some(
    ({ rowsWithoutFile, filesLeft, lost }) => rowsWithoutFile + filesLeft + lost > 0,
  );
  return { stores: results, isMissed };
};

type Result = {
  readonly kills: number;
  readonly acknowledged: number;
  readonly unknown: number;
  readonly collected: number;
  readonly rowsWithoutFile: number;
  readonly filesLeft: number;
  readonly lost: number;
};

async function killAll(
  { settings, store }: FaultedStore,
  kills: number,
  print: (line: string) => void,
): Promise<Result> {
  await using system = await startFaultySystem({ ...settings, LOAD_SHEDDING: "false" });
  await system.execute(`insert into storage.buckets (id, name) values ('${BUCKET}', '${BUCKET}')`);
  await using second = await startSecond(system, settings);
  const owner = await system.connect();
  const traffic = startFileTraffic(() => [system.url, second.url], CLIENTS);
  let rowsWithoutFile = 0;
  let collected = 0;
  for (let count = 1; count <= kills; count++) {
    await sleep(Math.random() * LONGEST_WAIT_MS);
    if (count % 2 === 0) {
      await system.killService();
      await system.startService();
    } else {
      await second.restart();
    }
    collected += await collectNow(owner, store);
    rowsWithoutFile += await countRowsWithoutFile(owner, store);
    if (count % 50 === 0) print(`  ${count} kills, ${summary(traffic)}, ${rowsWithoutFile} rows without file`);
  }
  await traffic.stop();
  await traffic.check();
  rowsWithoutFile += await countRowsWithoutFile(owner, store);
  const filesLeft = await countFilesLeft(owner, store);
  await owner.end();
  for (const line of traffic.wrong) print(`  ${line}`);
  return {
    ...{ kills, collected, rowsWithoutFile, filesLeft, lost: traffic.wrong.length },
    ...{ acknowledged: traffic.acknowledged(), unknown: traffic.unknown() },
  };
}

function summary({ acknowledged, unknown, wrong }: FileTraffic): string {
  return `${acknowledged()} acknowledged, ${unknown()} unknown, ${wrong.length} wrong`;
}

/** Starts another gateway on the same database and store. */
async function startSecond(system: FaultySystem, settings: Readonly<Record<string, string>>) {
  const port = await freePort();
  const start = () =>
    startGateway({ ...system.connections, ...settings, LOAD_SHEDDING: "false" }, port, system.logFile);
  let gateway = await start();
  return {
    url: gateway.url,
    async restart() {
      process.kill(gateway.pid, "SIGKILL");
      await gateway.ended;
      gateway = await start();
    },
    [Symbol.asyncDispose]: () => gateway.stop(),
  };
}

async function openFolder() {
  const folder = await mkdtemp(join(tmpdir(), "content-service-files-"));
  return {
    settings: { STORAGE_DIR: folder } as Readonly<Record<string, string>>,
    store: makeFolderStore(folder),
    [Symbol.asyncDispose]: () => rm(folder, { recursive: true, force: true }),
  };
}

/** Starts an S3 server of another vendor. */
async function openS3() {
  const folder = await mkdtemp(join(tmpdir(), "content-service-files-"));
  const { default: S3rver } = await import("s3rver");
  const server = new S3rver({
    ...{ port: 0, address: "127.0.0.1", silent: true, directory: join(folder, "s3") },
    configureBuckets: [{ name: "files", configs: [] }],
  });
  const { port } = await server.run();
  const endpoint = `http://127.0.0.1:${port}`;
  const location = { endpoint, bucket: "files", region: "us-east-1", ...S3_KEY };
  return {
    settings: {
      STORAGE_DIR: join(folder, "spool"),
      STORAGE_S3_ENDPOINT: endpoint,
      STORAGE_S3_ACCESS_KEY_ID: S3_KEY.accessKeyId,
      STORAGE_S3_SECRET_ACCESS_KEY: S3_KEY.secretAccessKey,
    } as Readonly<Record<string, string>>,
    store: makeS3Store(location, join(folder, "spool")),
    async [Symbol.asyncDispose]() {
      await server.close();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

const NAMED = "select distinct content as hash from storage.objects where content is not null";

/** Counts rows whose file is not in the store. */
export async function countRowsWithoutFile(owner: pg.ClientBase, store: FileStore): Promise<number> {
  const { rows } = await owner.query<{ hash: string }>(NAMED);
  let missing = 0;
  for (const { hash } of rows) {
    const file = await store.open(hash);
    if (file) await file.close();
    else missing++;
  }
  return missing;
}

/** Deletes files that no row names, without a grace period. */
export async function collectNow(owner: pg.ClientBase, store: FileStore): Promise<number> {
  const asOwner: AsOwner = (work) => work(owner as pg.Client);
  return collectFiles(store, asOwner, "0 seconds");
}

/** Counts files that remain after everything was deleted and collected. */
export async function countFilesLeft(owner: pg.ClientBase, store: FileStore): Promise<number> {
  await owner.query("delete from storage.objects; delete from content_service.unfinished_uploads");
  await store.removeDrafts(-60_000);
  await store.uploads().removeOlder(-60_000);
  for await (const hashes of store.list()) await owner.query("select content_service.note_stray_files($1)", [hashes]);
  await waitForOlderTransactions(owner);
  await collectNow(owner, store);
  let left = 0;
  for await (const hashes of store.list()) left += hashes.length;
  return left;
}

/** Waits for older transactions, of gateways' background work and of autovacuum: files that they may still need are not collected. */
async function waitForOlderTransactions(owner: pg.ClientBase): Promise<void> {
  const { rows } = await owner.query<{ now: string }>("select clock_timestamp()::text as now");
  const older = `select from pg_stat_activity
    where datname = current_database() and pid <> pg_backend_pid() and xact_start <= $1::timestamptz`;
  while ((await owner.query(older, [rows[0]!.now])).rowCount !== 0) await sleep(20);
}
