import { chmod, mkdtemp, readdir, rm, statfs } from "node:fs/promises";
import { join } from "node:path";
import { startTimeOf } from "../cluster/embedded/processes.ts";

/** Linux keeps these files in memory, where a database is created with a fifth of the work that a disk asks for. */
const IN_MEMORY = "/dev/shm";

/** Four test files beside each other have never needed half of it. */
const LEAST_BYTES = 6e9;

/** It is short, because the path of a socket must not exceed 107 bytes. */
const NAME = /^cs-tests-(\d+)-/;

/**
 * Where the machine has room, `tmpdir()` is a folder in memory from now on: here, in the workers and in the programs that tests start.
 * Returns a function that removes it.
 */
export async function keepFilesInMemory(): Promise<() => Promise<void>> {
  if (!(await hasRoom(IN_MEMORY))) return async () => {};
  await removeAbandoned();
  const folder = await mkdtemp(join(IN_MEMORY, `cs-tests-${process.pid}-`));
  // Postgres runs as another user if root starts it, and must reach its folder below.
  await chmod(folder, 0o1777);
  process.env.TMPDIR = folder;
  return () => rm(folder, { recursive: true, force: true });
}

async function hasRoom(folder: string): Promise<boolean> {
  const size = await statfs(folder).catch(() => null);
  return size !== null && size.bavail * size.bsize >= LEAST_BYTES;
}

/** A run that was killed could not remove its own. */
async function removeAbandoned(): Promise<void> {
  for (const name of await readdir(IN_MEMORY)) {
    const pid = NAME.exec(name)?.[1];
    if (pid === undefined || (await startTimeOf(Number(pid))) !== null) continue;
    // It may belong to another user.
    await rm(join(IN_MEMORY, name), { recursive: true, force: true }).catch(() => {});
  }
}
