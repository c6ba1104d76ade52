import { rm } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { isAlive, processesIn, readPid, signal } from "./processes.ts";

/**
 * Removes a lock file whose server is gone. If its process id now belongs to another process or a zombie, Postgres would
 * refuse to start.
 */
export async function removeStaleLock(file: string, dataFolder: string): Promise<void> {
  const pid = await readPid(file);
  if (pid === null || !isAlive(pid) || (await processesIn(dataFolder)).includes(pid)) return;
  if ((await readPid(file)) === pid) await rm(file, { force: true });
}

/** Stops the processes of an earlier run and waits for them: committed data must be on disk before the next start. */
export async function stopOrphans(dataFolder: string): Promise<void> {
  const server = await readPid(join(dataFolder, "postmaster.pid"));
  let working = await processesIn(dataFolder);
  // A server stops its own workers; workers without a server must be signalled one by one.
  for (const pid of server !== null && working.includes(server) ? [server] : working) {
    signal(pid, pid === server ? "SIGINT" : "SIGQUIT");
  }
  while (working.length > 0) {
    await sleep(20);
    working = await processesIn(dataFolder);
  }
}

/** Removes an incomplete cluster and kills the processes that still work on it. */
export async function removeDraft(draft: string): Promise<void> {
  for (let working = await processesIn(draft); working.length > 0; working = await processesIn(draft)) {
    for (const pid of working) signal(pid, "SIGKILL");
    await sleep(20);
  }
  await rm(draft, { recursive: true, force: true });
}
