import { rm } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { isAlive, processesOn, readPid, signal } from "./processes.ts";

/**
 * A lock file that outlived its server: when its number now belongs to somebody else, or to a dead process that nobody
 * has buried, Postgres would refuse to start.
 */
export async function removeStaleLock(file: string, dataFolder: string): Promise<void> {
  const pid = await readPid(file);
  if (pid === null || !isAlive(pid) || (await processesOn(dataFolder)).includes(pid)) return;
  if ((await readPid(file)) === pid) await rm(file, { force: true });
}

/** Ends what is left and waits for it: what its clients were told is committed must be on disk before the next start. */
export async function endOrphan(dataFolder: string): Promise<void> {
  const server = await readPid(join(dataFolder, "postmaster.pid"));
  let working = await processesOn(dataFolder);
  // A server ends its own workers; workers that have outlived it must be told one by one.
  for (const pid of server !== null && working.includes(server) ? [server] : working) {
    signal(pid, pid === server ? "SIGINT" : "SIGQUIT");
  }
  while (working.length > 0) {
    await sleep(20);
    working = await processesOn(dataFolder);
  }
}

/** Removes a cluster that was never finished, with whatever still works on it. */
export async function removeDraft(draft: string): Promise<void> {
  for (let working = await processesOn(draft); working.length > 0; working = await processesOn(draft)) {
    for (const pid of working) signal(pid, "SIGKILL");
    await sleep(20);
  }
  await rm(draft, { recursive: true, force: true });
}
