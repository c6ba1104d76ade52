import { execFile } from "node:child_process";
import { readdir, readFile, readlink, realpath, rm } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";

const run = promisify(execFile);

export async function readPid(file: string): Promise<number | null> {
  const pid = Number.parseInt(await readFile(file, "utf8").catch(() => ""), 10);
  return Number.isInteger(pid) && pid > 1 ? pid : null;
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}

/** A negative number is a process group. A process that has exited is no error. */
export function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
  }
}

/** Finds processes by their working directory, which is the data folder for Postgres and for our initdb. */
export async function processesIn(dataFolder: string): Promise<number[]> {
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
  const command = await ps(pid, "command");
  return folders.some((folder) => command.includes(folder)) ? [pid] : [];
}

export async function parentOf(pid: number): Promise<number> {
  if (process.platform !== "linux") return Number(await ps(pid, "ppid"));
  const status = await readFile(`/proc/${pid}/status`, "utf8").catch(() => "");
  return Number(/^PPid:\s*(\d+)/m.exec(status)?.[1]);
}

/** The start time of a process, in the system's format; null if it has exited. */
export async function startTimeOf(pid: number): Promise<string | null> {
  if (process.platform !== "linux") return (await ps(pid, "lstart")) || null;
  const stat = await readFile(`/proc/${pid}/stat`, "utf8").catch(() => "");
  // The program's name is in parentheses and may contain spaces and parentheses; the state is the third field, after it.
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  const state = fields[0];
  return !state || state === "Z" || state === "X" ? null : (fields[22 - 3] ?? null);
}

async function ps(pid: number, column: string): Promise<string> {
  // The start time is compared between processes, so it must not depend on the locale or time zone.
  const env = { PATH: "/usr/bin:/bin", LC_ALL: "C", TZ: "UTC" };
  const { stdout } = await run("ps", ["-o", `${column}=`, "-p", String(pid)], { env }).catch(() => ({ stdout: "" }));
  return stdout.trim();
}

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
