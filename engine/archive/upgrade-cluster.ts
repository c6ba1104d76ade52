import { rename, rm } from "node:fs/promises";
import { join, resolve } from "node:path";
import { clusterFolders } from "../embedded/cluster-folders.ts";
import { findBinaries, stagingFolder } from "../embedded/create-cluster.ts";
import { claimFile, releaseFile } from "../embedded/file-claim.ts";
import { findOldBinaries, readMajorVersion, withOldCluster } from "../embedded/old-cluster.ts";
import type { PostgresUrls } from "../postgres/served-postgres.ts";
import type { ArchiveSummary } from "./archive-format.ts";
import { restoreArchive } from "./restore-archive.ts";
import { writeArchive } from "./write-archive.ts";

export type ClusterUpgradeOptions = {
  readonly dataDir: string;
  /** The folder with the old version's binaries; null to search the usual places. */
  readonly oldBinaries: string | null;
  readonly database: string;
  /** Starts a cluster of the current version in the folder. */
  readonly startCluster: (dataDir: string) => Promise<PostgresUrls>;
  readonly report: (step: string) => void;
};

export type UpgradeResult = { readonly archive: ArchiveSummary; readonly original: string };

/**
 * Copies the rows of an embedded cluster to a new one of the current major version. The original cluster is kept beside it.
 * Null if the cluster has the current version already.
 */
export async function upgradeCluster({
  dataDir,
  oldBinaries: programs,
  database,
  startCluster,
  report,
}: ClusterUpgradeOptions): Promise<UpgradeResult | null> {
  const { data, ownerFile } = clusterFolders(dataDir);
  const major = await readMajorVersion(data);
  const { major: current } = await findBinaries();
  if (major === null) throw new Error(`${data} contains no Postgres cluster.`);
  if (major === String(current)) return null;
  const original = join(resolve(dataDir), `postgres-${major}`);
  if ((await readMajorVersion(original)) !== null) throw new Error(`${original} exists already; move it away first.`);
  const file = join(resolve(dataDir), `postgres-${major}.backup.gz`);

  return withClaim(ownerFile, async () => {
    report(`reading the rows with Postgres ${major}`);
    const folder = programs ?? (await findOldBinaries(major));
    await withOldCluster(data, folder, (url) => writeArchive(url(database), file));
    report(`restoring them with Postgres ${current}`);
    // The original stays in its place until the new cluster is complete.
    const staging = stagingFolder(resolve(dataDir));
    await rm(staging, { recursive: true, force: true });
    const archive = await restoreInto(file, staging, startCluster);
    await rename(data, original);
    await rename(clusterFolders(staging).data, data);
    await rm(staging, { recursive: true, force: true });
    return { archive, original };
  });
}

async function restoreInto(
  file: string,
  folder: string,
  startCluster: ClusterUpgradeOptions["startCluster"],
): Promise<ArchiveSummary> {
  const postgres = await startCluster(folder);
  try {
    return await restoreArchive(file, postgres.migrate);
  } finally {
    await postgres.close();
  }
}

/** Prevents a service from starting on the folder meanwhile. */
async function withClaim<T>(ownerFile: string, work: () => Promise<T>): Promise<T> {
  const owner = await claimFile(ownerFile);
  if (owner !== null) throw new Error(`The folder is in use by the service with process id ${owner}. Stop it first.`);
  try {
    return await work();
  } finally {
    await releaseFile(ownerFile);
  }
}
