import { readdir, rename, rm } from "node:fs/promises";
import { basename, dirname, join } from "node:path";

/** Where an upgrade creates the new cluster, beside the old one. */
export function stagingFolder(dataDir: string): string {
  return join(dataDir, "upgrading");
}

/** Completes an upgrade that was interrupted between its last two steps, by moving the new cluster to its place. */
export async function finishUpgrade(dataFolder: string): Promise<void> {
  const root = dirname(dataFolder);
  const staging = stagingFolder(root);
  const names = new Set(await readdir(root));
  const isOriginalAside = [...names].some((name) => /^postgres-\d+$/.test(name));
  if (names.has(basename(dataFolder)) || !isOriginalAside || !names.has(basename(staging))) return;
  await rename(join(staging, basename(dataFolder)), dataFolder);
  await rm(staging, { recursive: true, force: true });
}
