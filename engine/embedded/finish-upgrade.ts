import { readdir, rename, rm } from "node:fs/promises";
import { basename, dirname, join } from "node:path";

/** Where an upgrade makes the new cluster, beside the one that it is to replace. */
export function upgradingFolder(dataDir: string): string {
  return join(dataDir, "upgrading");
}

/** An upgrade that died between its last two steps has only to put in place what it has made. */
export async function finishUpgrade(dataFolder: string): Promise<void> {
  const root = dirname(dataFolder);
  const made = upgradingFolder(root);
  const names = new Set(await readdir(root));
  const isOriginalAside = [...names].some((name) => /^postgres-\d+$/.test(name));
  if (names.has(basename(dataFolder)) || !isOriginalAside || !names.has(basename(made))) return;
  await rename(join(made, basename(dataFolder)), dataFolder);
  await rm(made, { recursive: true, force: true });
}
