import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import pg from "pg";
import { startCluster } from "#cluster/embedded";
import { processorTimeIn } from "./processor-time.ts";

export type Scratch = AsyncDisposable & {
  url(role: string): string;
  /** The processor time of Postgres so far, in microseconds; null without /proc. */
  processorTime(): Promise<number | null>;
  /** Runs SQL as the superuser. */
  execute(sql: string): Promise<pg.QueryResult>;
};

/** Starts a cluster with the service's settings: durable, over a unix socket. */
export async function startScratch(schema: string): Promise<Scratch> {
  const dataDir = await mkdtemp(join(tmpdir(), "content-service-bench-"));
  // All servers keep their connections while others are measured.
  const settings = { max_connections: "200" };
  const cluster = await startCluster({ dataDir, port: null, tell: () => {}, settings });
  const url = (role: string) => cluster.url(role, "postgres");
  const client = new pg.Client({ connectionString: url("postgres") });
  await client.connect();
  await client.query(schema);
  await client.query("vacuum analyze");
  await client.query("checkpoint");
  const stop = async () => {
    await client.end();
    await cluster.stop();
    await rm(dataDir, { recursive: true, force: true });
  };
  return {
    url,
    processorTime: () => processorTimeIn(join(dataDir, "postgres")),
    execute: (sql) => client.query(sql),
    [Symbol.asyncDispose]: stop,
  };
}
