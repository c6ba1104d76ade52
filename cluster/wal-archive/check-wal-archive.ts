import { rm } from "node:fs/promises";
import { join } from "node:path";
import { withTemporaryFolder } from "../embedded/index.ts";
import { readArchiveFolder } from "./archive-folder.ts";
import { planRecovery, type RecoveryPlan } from "./choose-archive.ts";
import { recoverCluster } from "./recover-cluster.ts";
import { type ClusterCheck, verifyCluster } from "./verify-cluster.ts";

/** Restores the current archive into a temporary folder, and reads all of it. Throws if it is damaged. */
export async function checkWalArchive(folder: string, into: string): Promise<ClusterCheck> {
  const archive = await readArchiveFolder(folder);
  const plan = planRecovery(archive ? [archive] : [], { target: "latest", current: null, now: new Date() });
  // A check that was killed may have left the folder.
  await rm(into, { recursive: true, force: true });
  try {
    return await recoverCluster({ plan, into, report: () => {} }, verifyCluster);
  } finally {
    await rm(into, { recursive: true, force: true });
  }
}

/** Checks the recovery to a time. */
export function checkRecovery(plan: RecoveryPlan, report: (step: string) => void): Promise<ClusterCheck> {
  return withRecovered(plan, report, verifyCluster);
}

/** Runs the work on a temporary cluster of that time. */
export function withRecovered<T>(
  plan: RecoveryPlan,
  report: (step: string) => void,
  work: (urlOf: (role: string, database: string) => string) => Promise<T>,
): Promise<T> {
  return withTemporaryFolder("restore-at", (folder) =>
    recoverCluster({ plan, into: join(folder, "data"), report }, work),
  );
}
