import { type ChildProcess, spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { canTraverse, type SystemAccount } from "./system-account.ts";

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
