import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { runMigrations as migrateQueue, Logger as WorkerLogger } from "graphile-worker";
import pg from "pg";
import type { TestProject } from "vitest/node";
import { releaseHistories } from "../migrate/committed-migrations.ts";
import { runMigrations, setUsersAccess } from "../migrate/migrate.ts";
import { withClient } from "../postgres/client/with-client.ts";
import { keepFilesInMemory } from "./files-in-memory.ts";
import { watchLeftProcesses } from "./left-processes.ts";
import { COMPILE_CACHE_OF_TESTS } from "./program.ts";
import { socketAddressOf, startRouter } from "./routers/router.ts";
import { useRouter } from "./routers/through-router.ts";
import { startServer } from "./server-binaries.ts";

declare module "vitest" {
  interface ProvidedContext {
    /** Connection strings of the run's cluster, with DATABASE and ROLE to be filled in. */
    clusterUrl: string;
  }
}

/** Nothing of it is kept when the run is over. */
const CLUSTER_SETTINGS = { max_connections: "300", fsync: "off", full_page_writes: "off" };

/** One real Postgres for the whole run; each test file clones its own database from a template. */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  // The workers use it, and what they start with their environment: the service loads in half the processor time.
  process.env.NODE_COMPILE_CACHE ??= COMPILE_CACHE_OF_TESTS;
  const leftProcesses = watchLeftProcesses();
  const removeFiles = await keepFilesInMemory();
  const dataDir = await mkdtemp(join(tmpdir(), "content-service-test-"));
  const cluster = await startServer({ dataDir, port: null, settings: CLUSTER_SETTINGS });
  const urlOf = (database: string) => cluster.url("postgres", database);

  await createDatabases(urlOf("postgres"), ["empty", "platform", "content"]);
  const settings = { shadowUrl: urlOf("shadow"), rootUrl: urlOf("postgres") };
  const [platform, content] = releaseHistories();
  // One after the other: the first migration creates the roles of the cluster.
  await runMigrations({ name: "migrate" }, { ...settings, url: urlOf("platform"), histories: [platform!] });
  await runMigrations({ name: "migrate" }, { ...settings, url: urlOf("content"), histories: [platform!, content!] });

  // Each service does this when it starts on a database without it. The statements also make the service read the catalogue again.
  const logger = new WorkerLogger(() => () => {});
  for (const name of ["platform", "content"]) await migrateQueue({ connectionString: urlOf(name), logger });

  await withClient(urlOf("content"), (client) => setUsersAccess(client, "open"));

  const clusterUrl = cluster.url("ROLE", "DATABASE");
  const { ROUTER } = process.env;
  const router = ROUTER ? await startRouter(ROUTER, socketAddressOf(clusterUrl)) : null;
  project.provide("clusterUrl", clusterUrl);
  if (router) useRouter(router, clusterUrl);
  return async () => {
    await router?.close();
    await cluster.stop();
    const left = await leftProcesses.end();
    await rm(dataDir, { recursive: true, force: true });
    await removeFiles();
    if (left.length > 0)
      console.log(`Tests had not stopped these processes, which have been ended:\n${left.join("\n")}`);
  };
}

async function createDatabases(url: string, names: readonly string[]): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  for (const name of names) await client.query(`create database ${client.escapeIdentifier(name)}`);
  await client.end();
}
