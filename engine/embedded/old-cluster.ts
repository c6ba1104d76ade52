import { once } from "node:events";
import { access, mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { chooseAccount, giveTo } from "./account.ts";
import { launch } from "./launch.ts";

/** The major version of the cluster in the folder; null when there is none. */
export async function majorOf(dataFolder: string): Promise<string | null> {
  const version = await readFile(join(dataFolder, "PG_VERSION"), "utf8").catch(() => "");
  return version.trim() || null;
}

/** Where distributions and Homebrew put the programs of one major version. */
const PLACES = [
  (major: string) => `/usr/lib/postgresql/${major}/bin`,
  (major: string) => `/usr/pgsql-${major}/bin`,
  (major: string) => `/opt/homebrew/opt/postgresql@${major}/bin`,
];

export async function findPrograms(major: string): Promise<string> {
  for (const place of PLACES) {
    const folder = place(major);
    const isThere = await access(join(folder, "postgres")).then(
      () => true,
      () => false,
    );
    if (isThere) return folder;
  }
  throw new Error(
    `Reading a cluster of Postgres ${major} takes the programs of Postgres ${major}, and they are not here. ` +
      `Install them (Debian: apt-get install postgresql-${major}, macOS: brew install postgresql@${major}), ` +
      "or say where they are with --programs.",
  );
}

/** Serves a cluster by the programs of its own version while the work lasts. */
export async function withOldCluster<T>(
  dataFolder: string,
  programs: string,
  work: (url: (database: string) => string) => Promise<T>,
): Promise<T> {
  const account = await chooseAccount();
  const socket = await mkdtemp(join(tmpdir(), "old-postgres-"));
  await giveTo(account, socket);
  const settings = { listen_addresses: "", unix_socket_directories: socket, port: "5432", log_min_messages: "log" };
  const flags = Object.entries(settings).flatMap(([name, value]) => ["-c", `${name}=${value}`]);
  const server = await launch(join(programs, "postgres"), ["-D", dataFolder, ...flags], account, dataFolder);
  const ended = once(server, "exit");
  try {
    const said: string[] = [];
    const ready = Promise.withResolvers<void>();
    createInterface({ input: server.stderr! }).on("line", (line) => {
      if (said.length < 20) said.push(line);
      if (line.includes("ready to accept connections")) ready.resolve();
    });
    server.stdout!.resume();
    const failed = ended.then(() => {
      throw new Error(`The old Postgres did not start:\n${said.join("\n")}`);
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
