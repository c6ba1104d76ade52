import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import S3rver from "s3rver";
import { afterEach, expect, test } from "vitest";
import { JWT_SECRET } from "../../bench/comparison/sign-claims.ts";
import { BUCKET, startFileTraffic } from "../../bench/storage-faults/file-traffic.ts";
import { collectNow, countFilesLeft, countRowsWithoutFile } from "../../bench/storage-faults.ts";
import { type FileStore, makeFolderStore, makeS3Store } from "../../cluster/files/index.ts";
import { cloneDatabase } from "../database.ts";
import { connect } from "../db/callers.ts";
import { startProgram } from "../program.ts";
import { propertyRuns } from "../property-runs.ts";
import { settingsOf } from "../routers/through-router.ts";

// A part of `npm run bench -- storage-faults`, which kills a thousand times.

const KILLS = propertyRuns(15);
const CLIENTS = 4;
const LONGEST_WAIT_MS = 500;
const KEY = { accessKeyId: "S3RVER", secretAccessKey: "S3RVER" };

const opened: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of opened.splice(0).reverse()) await close();
});

type Backend = { readonly store: FileStore; readonly settings: Readonly<Record<string, string>> };

async function openFolder(folder: string): Promise<Backend> {
  return { store: makeFolderStore(folder), settings: { STORAGE_DIR: folder } };
}

async function openS3(folder: string): Promise<Backend> {
  const server = new S3rver({
    ...{ port: 0, address: "127.0.0.1", silent: true, directory: join(folder, "s3") },
    configureBuckets: [{ name: "files", configs: [] }],
  });
  const { port } = await server.run();
  opened.push(() => server.close());
  const endpoint = `http://127.0.0.1:${port}`;
  const spool = join(folder, "spool");
  return {
    store: makeS3Store({ endpoint, bucket: "files", region: "us-east-1", ...KEY }, spool),
    settings: {
      ...{ STORAGE_DIR: spool, STORAGE_S3_ENDPOINT: endpoint },
      ...{ STORAGE_S3_ACCESS_KEY_ID: KEY.accessKeyId, STORAGE_S3_SECRET_ACCESS_KEY: KEY.secretAccessKey },
    },
  };
}

test.each([
  ["a folder", openFolder],
  ["an S3 service", openS3],
])("two gateways that share %s and are killed lose no file, and leave none", async (_, open) => {
  const folder = await mkdtemp(join(tmpdir(), "killed-"));
  opened.push(() => rm(folder, { recursive: true }));
  const { store, settings } = await open(folder);
  const database = await cloneDatabase("platform");
  opened.push(() => database.drop());
  const owner = await connect(database.ownerUrl);
  opened.push(() => owner.end());
  await owner.query("insert into storage.buckets (id, name) values ($1, $1)", [BUCKET]);
  const start = () =>
    startProgram({ ...settingsOf(database), ...settings, BASE_SCHEMA: "platform", JWT_SECRET, RATE_LIMIT: "0" });
  const gateways = await Promise.all([start(), start()]);
  opened.push(() => Promise.all(gateways.map((gateway) => gateway.kill())));

  const traffic = startFileTraffic(() => gateways.map(({ url }) => url), CLIENTS);
  let rowsWithoutFile = 0;
  for (let count = 0; count < KILLS; count++) {
    await sleep(Math.random() * LONGEST_WAIT_MS);
    await gateways[count % 2]!.kill();
    gateways[count % 2] = await start();
    await collectNow(owner, store);
    rowsWithoutFile += await countRowsWithoutFile(owner, store);
  }
  await traffic.stop();
  await traffic.check();
  expect(traffic.wrong).toEqual([]);
  expect(traffic.acknowledged()).toBeGreaterThan(0);
  rowsWithoutFile += await countRowsWithoutFile(owner, store);
  expect([rowsWithoutFile, await countFilesLeft(owner, store)]).toEqual([0, 0]);
});
