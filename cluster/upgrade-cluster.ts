import { once } from "node:events";
import { access, mkdtemp, readFile, rename, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { createInterface } from "node:readline";
import { type RestoreResult, restoreArchive } from "./archive/restore-archive.ts";
import { writeArchive } from "./archive/write-archive.ts";
import {
  acquireFile,
  chooseAccount,
  chownTo,
  clusterFolders,
  endWithParent,
  findBinaries,
  releaseFile,
  removeDraft,
  spawnAs,
  stagingFolder,
  stopOrphans,
} from "./embedded/index.ts";
import type { PostgresUrls } from "./served-postgres.ts";

type ClusterUpgradeOptions = {
  readonly dataDir: string;
  /** The folder with the old version's binaries; null to search the usual places. */
  readonly oldBinaries: string | null;
  readonly database: string;
  /** Starts a cluster of the current version in the folder. */
  readonly startCluster: (dataDir: string) => Promise<PostgresUrls>;
  readonly report: (step: string) => void;
};

type UpgradeResult = { readonly archive: RestoreResult; readonly original: string };

/**
 * Copies the rows of an embedded cluster to a new one of the current major version. The original cluster is kept beside it.
 * Null if the cluster has the current version already.
 */
export async function upgradeCluster({
  dataDir,
  oldBinaries: programs,
  database,
  startCluster,
  report,
}: ClusterUpgradeOptions): Promise<UpgradeResult | null> {
  const { data, ownerFile } = clusterFolders(dataDir);
  const major = await readMajorVersion(data);
  const { major: current } = await findBinaries();
  if (major === null) throw new Error(`${data} contains no Postgres cluster.`);
  if (major === String(current)) return null;
  const original = join(resolve(dataDir), `postgres-${major}`);
  if ((await readMajorVersion(original)) !== null) throw new Error(`${original} exists already; move it away first.`);
  const file = join(resolve(dataDir), `postgres-${major}.backup.gz`);

  return withClaim(ownerFile, async () => {
    report(`reading the rows with Postgres ${major}`);
    const folder = programs ?? (await findOldBinaries(major));
    await withOldCluster(data, folder, (url) => writeArchive(url(database), file));
    report(`restoring them with Postgres ${current}`);
    // The original stays in its place until the new cluster is complete.
    const staging = stagingFolder(resolve(dataDir));
    await removeDraft(clusterFolders(staging).data);
    await rm(staging, { recursive: true, force: true });
    const archive = await restoreInto(file, staging, startCluster);
    await rename(data, original);
    await rename(clusterFolders(staging).data, data);
    await rm(staging, { recursive: true, force: true });
    return { archive, original };
  });
}

async function restoreInto(
  file: string,
  folder: string,
  startCluster: ClusterUpgradeOptions["startCluster"],
): Promise<RestoreResult> {
  const postgres = await startCluster(folder);
  try {
    return await restoreArchive(file, postgres.migrate);
  } finally {
    await postgres.close();
  }
}

/** Prevents a service from starting on the folder meanwhile. */
async function withClaim<T>(ownerFile: string, work: () => Promise<T>): Promise<T> {
  const owner = await acquireFile(ownerFile);
  if (owner !== null) throw new Error(`The folder is in use by the service with process id ${owner}. Stop it first.`);
  try {
    return await work();
  } finally {
    await releaseFile(ownerFile);
  }
}

/** Returns the major version of the cluster in the folder; null if there is none. */
async function readMajorVersion(dataFolder: string): Promise<string | null> {
  const version = await readFile(join(dataFolder, "PG_VERSION"), "utf8").catch(() => "");
  return version.trim() || null;
}

/** The folders in which distributions and Homebrew install the binaries of a major version. */
const INSTALL_PATHS = [
  (major: string) => `/usr/lib/postgresql/${major}/bin`,
  (major: string) => `/usr/pgsql-${major}/bin`,
  (major: string) => `/opt/homebrew/opt/postgresql@${major}/bin`,
];

async function findOldBinaries(major: string): Promise<string> {
  for (const place of INSTALL_PATHS) {
    const folder = place(major);
    const isThere = await access(join(folder, "postgres")).then(
      () => true,
      () => false,
    );
    if (isThere) return folder;
  }
  throw new Error(
    `The binaries of Postgres ${major} are needed to read the old cluster, and were not found. ` +
      `Install them (Debian: apt-get install postgresql-${major}, macOS: brew install postgresql@${major}), ` +
      "or pass their folder with --programs.",
  );
}

/** Runs the old cluster with binaries of its own version during the work. */
export async function withOldCluster<T>(
  dataFolder: string,
  programs: string,
  work: (url: (database: string) => string) => Promise<T>,
): Promise<T> {
  const account = await chooseAccount();
  const socket = await mkdtemp(join(tmpdir(), "old-postgres-"));
  await chownTo(account, socket);
  const settings = {
    listen_addresses: "",
    unix_socket_directories: socket,
    port: "5432",
    log_min_messages: "log",
    // A backup locks every table.
    max_locks_per_transaction: "2048",
  };
  const flags = Object.entries(settings).flatMap(([name, value]) => ["-c", `${name}=${value}`]);
  // An upgrade that was killed may have left processes.
  await stopOrphans(dataFolder);
  const server = await spawnAs(join(programs, "postgres"), ["-D", dataFolder, ...flags], account, dataFolder);
  endWithParent(server, "SIGINT");
  const ended = once(server, "exit");
  try {
    const outputLines: string[] = [];
    const ready = Promise.withResolvers<void>();
    createInterface({ input: server.stderr! }).on("line", (line) => {
      if (outputLines.length < 20) outputLines.push(line);
      if (line.includes("ready to accept connections")) ready.resolve();
    });
    server.stdout!.resume();
    const failed = ended.then(() => {
      throw new Error(`The old Postgres did not start:\n${outputLines.join("\n")}`);
    });
    await Promise.race([ready.promise, failed]);
    failed.catch(() => {});
    return await work((database) => `postgresql://postgres@/${encodeURIComponent(database)}?host=${socket}&port=5432`);
  } finally {
    if (server.exitCode === null && server.signalCode === null) {
      server.kill("SIGINT");
      await ended;
    }
    await rm(socket, { recursive: true, force: true });
  }
}
