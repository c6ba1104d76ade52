import { open } from "node:fs/promises";

/** Otherwise a crash of the machine could undo what was created or renamed in the folder. */
export async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder);
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}
