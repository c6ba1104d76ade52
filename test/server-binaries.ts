import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { type Cluster, type ClusterOptions, startCluster } from "../cluster/embedded/cluster.ts";
import { type Binaries, findBinaries } from "../cluster/embedded/create-cluster.ts";

/** A folder with `postgres` and `initdb` of another version, to test what we say about it. */
const { TEST_POSTGRES } = process.env;

/** Returns the binaries of the tests' clusters: the embedded Postgres, or TEST_POSTGRES. */
export async function serverBinaries(): Promise<Binaries> {
  return TEST_POSTGRES ? binariesIn(TEST_POSTGRES) : findBinaries();
}

export async function binariesIn(folder: string): Promise<Binaries> {
  const postgres = join(folder, "postgres");
  const { stdout } = await promisify(execFile)(postgres, ["--version"]);
  const major = Number(/\(PostgreSQL\) (\d+)/.exec(stdout)?.[1]);
  return { postgres, initdb: join(folder, "initdb"), major };
}

/** Starts a cluster. Tests of the service with its own embedded Postgres call `startCluster` instead. */
export async function startServer(options: Omit<ClusterOptions, "tell">): Promise<Cluster> {
  return startCluster({ ...options, binaries: options.binaries ?? (await serverBinaries()), tell: () => {} });
}
