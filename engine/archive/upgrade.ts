import { rename, rm } from "node:fs/promises";
import { join, resolve } from "node:path";
import { findBinaries } from "../embedded/binaries.ts";
import { claim, release } from "../embedded/claim.ts";
import { upgradingFolder } from "../embedded/finish-upgrade.ts";
import { foldersOf } from "../embedded/folders.ts";
import { findPrograms, majorOf, withOldCluster } from "../embedded/old-cluster.ts";
import type { Postgres } from "../postgres.ts";
import type { Archive } from "./inspect.ts";
import { restoreArchive } from "./restore.ts";
import { writeArchive } from "./write.ts";

export type Upgrade = {
  readonly dataDir: string;
  /** The folder of the old version's programs; null: where they usually are. */
  readonly programs: string | null;
  readonly database: string;
  /** Starts a cluster of ours in that folder. */
  readonly reach: (dataDir: string) => Promise<Postgres>;
  readonly tell: (step: string) => void;
};

export type Upgraded = { readonly archive: Archive; readonly original: string };

/**
 * Carries the rows of an embedded cluster of another major version over to one of ours. The original stays beside it.
 * Null: it is of ours already.
 */
export async function upgradeCluster({ dataDir, programs, database, reach, tell }: Upgrade): Promise<Upgraded | null> {
  const { data, ownerFile } = foldersOf(dataDir);
  const major = await majorOf(data);
  const { major: ours } = await findBinaries();
  if (major === null) throw new Error(`${data} holds no cluster.`);
  if (major === String(ours)) return null;
  const original = join(resolve(dataDir), `postgres-${major}`);
  if ((await majorOf(original)) !== null) throw new Error(`${original} is there already; move it away first.`);
  const file = join(resolve(dataDir), `postgres-${major}.backup.gz`);

  return alone(ownerFile, async () => {
    tell(`reading the rows by Postgres ${major}`);
    const folder = programs ?? (await findPrograms(major));
    await withOldCluster(data, folder, (url) => writeArchive(url(database), file));
    tell(`writing them by Postgres ${ours}`);
    // Whatever happens here, the original is in its place until the new one is whole.
    const beside = upgradingFolder(resolve(dataDir));
    await rm(beside, { recursive: true, force: true });
    const archive = await restoreBeside(file, beside, reach);
    await rename(data, original);
    await rename(foldersOf(beside).data, data);
    await rm(beside, { recursive: true, force: true });
    return { archive, original };
  });
}

async function restoreBeside(file: string, folder: string, reach: Upgrade["reach"]): Promise<Archive> {
  const postgres = await reach(folder);
  try {
    return await restoreArchive(file, postgres.migrate);
  } finally {
    await postgres.close();
  }
}

/** Nobody starts a service on the folder meanwhile. */
async function alone<T>(ownerFile: string, work: () => Promise<T>): Promise<T> {
  const owner = await claim(ownerFile);
  if (owner !== null) throw new Error(`The folder is in use by the service with process id ${owner}. Stop it first.`);
  try {
    return await work();
  } finally {
    await release(ownerFile);
  }
}
