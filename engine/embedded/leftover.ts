import { execFile } from "node:child_process";
import { readdir, readFile, readlink, realpath, rm } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";

const run = promisify(execFile);

/** What an earlier run has left at work on a data folder. */
export type Leftover =
  | { readonly kind: "none" }
  | { readonly kind: "serving"; readonly owner: number }
  | { readonly kind: "orphan" };

/** Tells a server that still has its parent from one whose parent was killed, and both from a pid file that outlived its process. */
export async function findLeftover(dataFolder: string, ownerFile: string): Promise<Leftover> {
  const working = await processesOn(dataFolder);
  if (working.length === 0) return { kind: "none" };
  const server = await readPid(join(dataFolder, "postmaster.pid"));
  const owner = await readPid(ownerFile);
  const served = server !== null && owner !== null && working.includes(server) && (await parentOf(server)) === owner;
  return served ? { kind: "serving", owner } : { kind: "orphan" };
}

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

async function readPid(file: string): Promise<number | null> {
  const pid = Number.parseInt(await readFile(file, "utf8").catch(() => ""), 10);
  return Number.isInteger(pid) && pid > 1 ? pid : null;
}

export function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}

function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
  }
}

/** Postgres makes its data folder the working directory of each of its processes. */
async function processesOn(dataFolder: string): Promise<number[]> {
  const folder = await realpath(dataFolder).catch(() => null);
  if (folder === null) return [];
  if (process.platform !== "linux") return serverNamedInPidFile(dataFolder, folder);
  const entries = (await readdir("/proc")).filter((name) => /^\d+$/.test(name));
  const folders = await Promise.all(entries.map((pid) => readlink(`/proc/${pid}/cwd`).catch(() => null)));
  return entries.filter((_, index) => folders[index] === folder).map(Number);
}

async function serverNamedInPidFile(...folders: [dataFolder: string, realFolder: string]): Promise<number[]> {
  const pid = await readPid(join(folders[0], "postmaster.pid"));
  if (pid === null) return [];
  const { stdout } = await run("ps", ["-o", "command=", "-p", String(pid)]).catch(() => ({ stdout: "" }));
  return folders.some((folder) => stdout.includes(folder)) ? [pid] : [];
}

async function parentOf(pid: number): Promise<number> {
  if (process.platform === "linux") {
    const status = await readFile(`/proc/${pid}/status`, "utf8").catch(() => "");
    return Number(/^PPid:\s*(\d+)/m.exec(status)?.[1]);
  }
  const { stdout } = await run("ps", ["-o", "ppid=", "-p", String(pid)]).catch(() => ({ stdout: "" }));
  return Number(stdout);
}
