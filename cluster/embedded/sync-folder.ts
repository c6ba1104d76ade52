import { open } from "node:fs/promises";
import { release } from "node:os";

/** Syncs the folder; otherwise a crash of the machine could undo the creation or renaming of its files. */
export async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder);
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/** True if Postgres may sync all files in one call: Linux reports its errors since 5.8. */
export function reportsSyncfsErrors(): boolean {
  if (process.platform !== "linux") return false;
  const [major = 0, minor = 0] = release().split(".").map(Number);
  return major > 5 || (major === 5 && minor >= 8);
}
