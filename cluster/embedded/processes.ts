import { type ChildProcess, execFile, spawn } from "node:child_process";
import { accessSync, constants, existsSync } from "node:fs";
import { chown, readdir, readFile, readlink, realpath, rm, stat } from "node:fs/promises";
import type { Socket } from "node:net";
import { dirname, join, resolve } from "node:path";
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

/** Sends a signal. A negative number is a process group. A process that has exited is no error. */
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

/** Returns the start time of a process, in the system's format; null if it has exited. */
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

/**
 * Signals the child when this process ends, even by kill -9. A shell waits on a pipe whose other end this process holds. The
 * shell ends with the child, because the process id may be reused afterwards.
 */
export function endWithParent(child: ChildProcess, name: "SIGINT" | "SIGTERM" | "SIGKILL"): void {
  if (child.pid === undefined) return;
  const watcher = spawn("/bin/sh", ["-c", `cat >/dev/null; kill -${name.slice(3)} ${child.pid}`], {
    detached: true,
    stdio: ["pipe", "ignore", "ignore"],
  });
  watcher.unref();
  (watcher.stdin as Socket).unref();
  child.once("exit", () => {
    if (watcher.pid !== undefined && watcher.exitCode === null) signal(-watcher.pid, "SIGKILL");
  });
}

const SETPRIV = ["/usr/bin/setpriv", "/bin/setpriv"].find((path) => existsSync(path));

/** Starts a Postgres program as the account, in a session of its own so that Ctrl-C does not reach it. */
export async function spawnAs(
  command: string,
  args: readonly string[],
  account: SystemAccount | null,
  folder: string,
): Promise<ChildProcess> {
  const options = {
    detached: true,
    stdio: ["ignore", "pipe", "pipe"] as ("ignore" | "pipe")[],
    cwd: folder,
    env: cleanEnvironment(),
  };
  if (!account) return spawn(command, args, options);
  const reachable = await Promise.all([command, folder].map((path) => canTraverse(account, path)));
  if (reachable.every(Boolean)) return spawn(command, args, { ...options, uid: account.uid, gid: account.gid });
  const capabilityName = await bypassCapability();
  if (!SETPRIV || !capabilityName) {
    throw new Error(
      `The user ${account.name}, who runs Postgres because root may not, cannot reach ${folder}. ` +
        "Move the project out of root's home, or set DATA_DIR to a folder that all users may enter.",
    );
  }
  const identity = [`--reuid=${account.uid}`, `--regid=${account.gid}`, "--clear-groups"];
  // Postgres checks its own binary with access(2), which respects ambient capabilities only with this securebit.
  const capability = [
    `--inh-caps=+${capabilityName}`,
    `--ambient-caps=+${capabilityName}`,
    "--securebits=+no_setuid_fixup",
  ];
  return spawn(SETPRIV, [...identity, ...capability, command, ...args], options);
}

/**
 * Returns the capability that lets the server traverse closed parent folders such as /root: dac_read_search if root has it,
 * otherwise dac_override, which root has in most containers.
 */
async function bypassCapability(): Promise<"dac_read_search" | "dac_override" | null> {
  const status = await readFile("/proc/self/status", "utf8").catch(() => "");
  const bounds = BigInt(`0x${/^CapBnd:\s*([\da-f]+)$/m.exec(status)?.[1] ?? "0"}`);
  if (bounds & (1n << 2n)) return "dac_read_search";
  return bounds & (1n << 1n) ? "dac_override" : null;
}

/** Excludes PG* variables and the locale of the user's shell, which Postgres would use. */
function cleanEnvironment(): NodeJS.ProcessEnv {
  return { PATH: "/usr/local/bin:/usr/bin:/bin", LC_ALL: "C" };
}

/** The operating-system user that runs Postgres; null for the current user. */
export type SystemAccount = { readonly name: string; readonly uid: number; readonly gid: number };

/** Postgres refuses to run as root, so root runs it as a system user. */
export async function chooseAccount(): Promise<SystemAccount | null> {
  if (process.getuid?.() !== 0) return null;
  const passwd = await readFile("/etc/passwd", "utf8");
  const accounts = passwd.split("\n").map((line) => line.split(":"));
  for (const name of ["postgres", "nobody"]) {
    const entry = accounts.find((fields) => fields[0] === name);
    if (entry) return { name, uid: Number(entry[2]), gid: Number(entry[3]) };
  }
  throw new Error(
    "Postgres refuses to run as root, and this machine has neither a user postgres nor a user nobody. " +
      "Start the service as an ordinary user, or add one with: useradd --system postgres",
  );
}

export async function chownTo(account: SystemAccount | null, path: string): Promise<void> {
  if (account) await chown(path, account.uid, account.gid);
}

/** True if the account may enter all parent folders of the path; false below a home folder with mode 0700. */
async function canTraverse(account: SystemAccount | null, path: string): Promise<boolean> {
  if (!account) return isAccessible(path);
  for (let folder = dirname(resolve(path)); ; folder = dirname(folder)) {
    const { uid, gid, mode } = await stat(folder);
    const searchBit = uid === account.uid ? 0o100 : gid === account.gid ? 0o010 : 0o001;
    if (!(mode & searchBit)) return false;
    if (folder === dirname(folder)) return true;
  }
}

function isAccessible(path: string): boolean {
  try {
    accessSync(dirname(resolve(path)), constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
