import { type ChildProcess, spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { type Account, canReach } from "./account.ts";

const SETPRIV = ["/usr/bin/setpriv", "/bin/setpriv"].find((path) => existsSync(path));

/** Starts a Postgres program in its folder as the account, in a session of its own so that Ctrl-C reaches this program alone. */
export async function launch(
  command: string,
  args: readonly string[],
  account: Account | null,
  folder: string,
): Promise<ChildProcess> {
  const options = {
    detached: true,
    stdio: ["ignore", "pipe", "pipe"] as ("ignore" | "pipe")[],
    cwd: folder,
    env: plainEnvironment(),
  };
  if (!account) return spawn(command, args, options);
  const reachable = await Promise.all([command, folder].map((path) => canReach(account, path)));
  if (reachable.every(Boolean)) return spawn(command, args, { ...options, uid: account.uid, gid: account.gid });
  const passage = await passageThroughClosedFolders();
  if (!SETPRIV || !passage) {
    throw new Error(
      `The user ${account.name}, who runs Postgres because root may not, cannot reach ${folder}. ` +
        "Move the project out of root's home, or set DATA_DIR to a folder that everybody may enter.",
    );
  }
  const identity = [`--reuid=${account.uid}`, `--regid=${account.gid}`, "--clear-groups"];
  // Postgres asks access(2) for its own program, which heeds capabilities of ordinary users only with that bit.
  const capability = [`--inh-caps=+${passage}`, `--ambient-caps=+${passage}`, "--securebits=+no_setuid_fixup"];
  return spawn(SETPRIV, [...identity, ...capability, command, ...args], options);
}

/**
 * The capability that lets the server through closed folders above its own, such as /root: the one that only reads where
 * root has it, else the one that root has in most containers.
 */
async function passageThroughClosedFolders(): Promise<"dac_read_search" | "dac_override" | null> {
  const status = await readFile("/proc/self/status", "utf8").catch(() => "");
  const bounds = BigInt(`0x${/^CapBnd:\s*([\da-f]+)$/m.exec(status)?.[1] ?? "0"}`);
  if (bounds & (1n << 2n)) return "dac_read_search";
  return bounds & (1n << 1n) ? "dac_override" : null;
}

/** Postgres reads PG* variables and the locale; what the user's shell has set must not leak into the cluster. */
function plainEnvironment(): NodeJS.ProcessEnv {
  return { PATH: "/usr/local/bin:/usr/bin:/bin", LC_ALL: "C" };
}
