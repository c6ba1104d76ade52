import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { mkdtemp, readdir, readFile, rename, rm } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { type Account, giveTo } from "./account.ts";
import type { Binaries } from "./binaries.ts";
import { upgradingFolder } from "./finish-upgrade.ts";
import { foldersOf } from "./folders.ts";
import { launch } from "./launch.ts";
import { removeDraft } from "./leftover.ts";

const DRAFT = "postgres.new-";

/** Whether the folder holds a cluster that these binaries can serve; anything that they cannot is refused with advice. */
export async function hasCluster(dataFolder: string, { major }: Binaries): Promise<boolean> {
  const version = (await readFile(join(dataFolder, "PG_VERSION"), "utf8").catch(() => "")).trim();
  if (version === String(major)) return true;
  if (version) {
    throw new Error(
      `${dataFolder} holds a cluster of Postgres ${version}, and the embedded Postgres is ${major}. It was left untouched. ` +
        "Carry it over with the command upgrade (content-service upgrade, or npm run upgrade), which keeps the original, " +
        `or serve it with a Postgres ${version} of your own by DATABASE_URL.`,
    );
  }
  const found = await readdir(dataFolder).catch(() => []);
  if (found.length > 0) {
    throw new Error(`${dataFolder} is not empty and holds no Postgres cluster. Set DATA_DIR to another folder.`);
  }
  return false;
}

/** Whether there is a cluster of any version, also one that an upgrade was about to put in its place. */
export function holdsCluster(dataDir: string): boolean {
  const places = [foldersOf(dataDir).data, upgradingFolder(resolve(dataDir))];
  return places.some((place) => existsSync(place));
}

/**
 * Makes the cluster beside its place and moves it there whole, so that an interrupted start leaves nothing half-made.
 * The caller has claimed the folder, so every draft that lies there already is abandoned.
 */
export async function initialise(dataFolder: string, binaries: Binaries, account: Account | null): Promise<void> {
  const parent = dirname(dataFolder);
  for (const name of await readdir(parent)) {
    if (name.startsWith(DRAFT)) await removeDraft(join(parent, name));
  }
  const draft = await mkdtemp(join(parent, DRAFT));
  await giveTo(account, draft);
  const output = await runInitdb(binaries, draft, account);
  if (output !== null) {
    await rm(draft, { recursive: true, force: true });
    throw new Error(`Creating the cluster in ${dataFolder} failed:\n${output}`);
  }
  await rename(draft, dataFolder);
}

/** Null when it went well, else what initdb said. */
async function runInitdb(binaries: Binaries, folder: string, account: Account | null): Promise<string | null> {
  let output: string | null = null;
  // Trigram search knows letters beyond ASCII by the system's locale alone, which not every system has.
  for (const letters of ["C.UTF-8", "C"]) {
    const locale = ["--locale=C", `--lc-ctype=${letters}`, "--locale-provider=builtin", "--builtin-locale=C.UTF-8"];
    const access = ["--username=postgres", "--auth-local=trust", "--auth-host=scram-sha-256"];
    const args = [`--pgdata=${folder}`, "--encoding=UTF8", ...locale, ...access, "--no-instructions"];
    output = await failureOf(await launch(binaries.initdb, args, account, folder));
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
