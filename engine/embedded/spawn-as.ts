import { type ChildProcess, spawn } from "node:child_process";
import { accessSync, constants, existsSync } from "node:fs";
import { chown, readFile, stat } from "node:fs/promises";
import { dirname, resolve } from "node:path";

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
 * The capability that lets the server traverse closed parent folders such as /root: dac_read_search if root has it,
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

/** Whether the account may enter all parent folders of the path; not so below a home folder with mode 0700. */
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
