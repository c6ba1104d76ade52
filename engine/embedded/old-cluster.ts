import { once } from "node:events";
import { access, mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { chooseAccount, chownTo, spawnAs } from "./spawn-as.ts";

/** The major version of the cluster in the folder; null if there is none. */
export async function readMajorVersion(dataFolder: string): Promise<string | null> {
  const version = await readFile(join(dataFolder, "PG_VERSION"), "utf8").catch(() => "");
  return version.trim() || null;
}

/** Where distributions and Homebrew install the binaries of a major version. */
const INSTALL_PATHS = [
  (major: string) => `/usr/lib/postgresql/${major}/bin`,
  (major: string) => `/usr/pgsql-${major}/bin`,
  (major: string) => `/opt/homebrew/opt/postgresql@${major}/bin`,
];

export async function findOldBinaries(major: string): Promise<string> {
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
  const server = await spawnAs(join(programs, "postgres"), ["-D", dataFolder, ...flags], account, dataFolder);
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
