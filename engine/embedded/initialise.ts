import { mkdir, readdir, readFile, rename, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { type Account, giveTo } from "./account.ts";
import type { Binaries } from "./binaries.ts";
import { launch } from "./launch.ts";
import { isAlive } from "./leftover.ts";

/** Whether the folder holds a cluster that these binaries can serve; anything that they cannot is refused with advice. */
export async function hasCluster(dataFolder: string, { major }: Binaries): Promise<boolean> {
  const version = (await readFile(join(dataFolder, "PG_VERSION"), "utf8").catch(() => "")).trim();
  if (version === String(major)) return true;
  if (version) {
    throw new Error(
      `${dataFolder} holds a cluster of Postgres ${version}, and the embedded Postgres is ${major}. It was left untouched. ` +
        `Serve it with a Postgres ${version} of your own by DATABASE_URL, or dump it there with pg_dump, set DATA_DIR to a new ` +
        "folder, start, and restore the dump into the new one.",
    );
  }
  const found = await readdir(dataFolder).catch(() => []);
  if (found.length > 0) {
    throw new Error(`${dataFolder} is not empty and holds no Postgres cluster. Set DATA_DIR to another folder.`);
  }
  return false;
}

/** Makes the cluster beside its place and moves it there whole, so that an interrupted start leaves nothing half-made. */
export async function initialise(dataFolder: string, binaries: Binaries, account: Account | null): Promise<void> {
  const parent = dirname(dataFolder);
  await removeAbandonedDrafts(parent);
  const draft = join(parent, `postgres.new-${process.pid}`);
  await mkdir(draft, { mode: 0o700 });
  await giveTo(account, draft);
  const locale = ["--encoding=UTF8", "--locale=C", "--locale-provider=builtin", "--builtin-locale=C.UTF-8"];
  const access = ["--username=postgres", "--auth-local=trust", "--auth-host=scram-sha-256"];
  const initdb = await launch(
    binaries.initdb,
    [`--pgdata=${draft}`, ...locale, ...access, "--no-instructions"],
    account,
    [draft],
  );
  let output = "";
  initdb.stdout?.on("data", (chunk) => (output += chunk));
  initdb.stderr?.on("data", (chunk) => (output += chunk));
  const code = await new Promise((done, fail) => initdb.once("error", fail).once("close", done));
  if (code !== 0) {
    await rm(draft, { recursive: true, force: true });
    throw new Error(`Creating the cluster in ${dataFolder} failed:\n${output.trim()}`);
  }
  await rename(draft, dataFolder);
}

async function removeAbandonedDrafts(parent: string): Promise<void> {
  for (const name of await readdir(parent)) {
    const maker = Number(/^postgres\.new-(\d+)$/.exec(name)?.[1]);
    if (maker && !isAlive(maker)) await rm(join(parent, name), { recursive: true, force: true });
  }
}
