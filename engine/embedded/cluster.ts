import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, readFile } from "node:fs/promises";
import type { Socket } from "node:net";
import { release as kernelRelease, totalmem } from "node:os";
import { join, resolve } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { chooseAccount } from "./account.ts";
import { findBinaries } from "./binaries.ts";
import { claim, claimantOf, release } from "./claim.ts";
import { finishUpgrade } from "./finish-upgrade.ts";
import { type Folders, foldersOf, makeFolders } from "./folders.ts";
import { hasCluster, initialise } from "./initialise.ts";
import { launch } from "./launch.ts";
import { endOrphan, removeStaleLock } from "./leftover.ts";
import { parentOf, processesOn, readPid, signal } from "./processes.ts";

const DEFAULT_PORT = 5432;

export type Cluster = {
  /** A connection string over the unix socket. */
  url(role: string, database: string): string;
  /** Resolves with the reason when the server ends without having been asked to. */
  readonly ended: Promise<string>;
  stop(): Promise<void>;
};

export type ClusterOptions = {
  readonly dataDir: string;
  /** Opens 127.0.0.1 on this port, with a password; null keeps the cluster to its unix socket. */
  readonly port: number | null;
  /** Further server settings, which win over ours. */
  readonly settings?: Readonly<Record<string, string>>;
  /** Says what is being done, for people who wait. */
  readonly tell: (step: string) => void;
};

/** Starts the Postgres that ships with us; it ends when this process ends, however that happens. */
export async function startCluster(options: ClusterOptions): Promise<Cluster> {
  const folders = foldersOf(options.dataDir);
  const claimant = await claimFolder(folders, options.dataDir);
  const owner = claimant ?? ((await servesItself(folders.data)) ? process.pid : null);
  if (owner !== null) {
    throw new Error(
      `${resolve(options.dataDir)} is in use by the service with process id ${owner}. ` +
        "Stop that one first, or set DATA_DIR (and PORT) to run a second one beside it.",
    );
  }
  try {
    return await startClaimed(folders, options);
  } catch (error) {
    await release(folders.ownerFile);
    throw error;
  }
}

/** As claim does; a folder that cannot be made or written is told by the setting that names it. */
async function claimFolder({ ownerFile }: Folders, dataDir: string): Promise<number | null> {
  try {
    await mkdir(resolve(dataDir), { recursive: true });
    return await claim(ownerFile);
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException;
    if (code === undefined) throw cause;
    throw new Error(
      `${resolve(dataDir)} cannot be written (${code}). ` +
        "Set DATA_DIR to a folder that this user may write, or DATABASE_URL to a Postgres of your own.",
      { cause },
    );
  }
}

/** The claim outlives a server that dies, so that nobody comes between it and its restart. */
async function servesItself(dataFolder: string): Promise<boolean> {
  const server = await readPid(join(dataFolder, "postmaster.pid"));
  if (server === null || !(await processesOn(dataFolder)).includes(server)) return false;
  return (await parentOf(server)) === process.pid;
}

async function startClaimed(folders: Folders, { dataDir, port, settings, tell }: ClusterOptions): Promise<Cluster> {
  const binaries = await findBinaries();
  const account = await chooseAccount();
  if ((await processesOn(folders.data)).length > 0) {
    tell("waiting for the Postgres of an earlier run to end");
    await endOrphan(folders.data);
  }
  for (const lock of [join(folders.data, "postmaster.pid"), socketLock(folders.socket, port)]) {
    await removeStaleLock(lock, folders.data);
  }

  await makeFolders(resolve(dataDir), folders, account);
  await finishUpgrade(folders.data);
  if (!(await hasCluster(folders.data, binaries))) {
    tell("creating the database cluster");
    await initialise(folders.data, binaries, account);
  }

  const flags = Object.entries({ ...serverSettings(folders.socket, port), ...settings }).flatMap(([name, value]) => [
    "-c",
    `${name}=${value}`,
  ]);
  const server = await launch(binaries.postgres, ["-D", folders.data, ...flags], account, folders.data);
  endWithParent(server);
  const { ended } = await becomeReady(server, tell).catch((error: Error) => {
    throw port !== null && error.message.includes("could not create any TCP/IP sockets")
      ? portInUse(port, error)
      : error;
  });

  let stopping: Promise<void> | null = null;
  const stop = async () => {
    server.kill("SIGINT");
    await ended;
    await release(folders.ownerFile);
  };
  return {
    url: (role, database) => socketUrl(folders.socket, port ?? DEFAULT_PORT, role, database),
    ended,
    stop: () => (stopping ??= stop()),
  };
}

/** How to reach the cluster of a service on this folder, once it has started; null when there is none. */
export async function runningCluster({ dataDir }: Pick<ClusterOptions, "dataDir">): Promise<Cluster["url"] | null> {
  const { data, ownerFile } = foldersOf(dataDir);
  for (;;) {
    const owner = await claimantOf(ownerFile);
    if (owner === null) return null;
    const lines = (await readStatus(join(data, "postmaster.pid"))).split("\n");
    const [server, , , port, socket, , , status] = lines;
    if (status?.trim() === "ready" && (await parentOf(Number(server))) === owner) {
      return (role, database) => socketUrl(socket!, Number(port), role, database);
    }
    await sleep(50);
  }
}

/** Empty before the server has written it; nobody else than who runs it may read it. */
async function readStatus(file: string): Promise<string> {
  try {
    return await readFile(file, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EACCES") return "";
    throw new Error(`${file} is closed to this user: run this as the user who runs the service.`, { cause: error });
  }
}

function socketUrl(socket: string, port: number, role: string, database: string): string {
  const place = new URLSearchParams({ host: socket, port: String(port) });
  return `postgresql://${encodeURIComponent(role)}@/${encodeURIComponent(database)}?${place}`;
}

function portInUse(port: number, cause: Error): Error {
  return new Error(
    `The embedded Postgres cannot listen on port ${port} of 127.0.0.1. ` +
      "Stop what listens there, or set EMBEDDED_PORT to another port, or not at all.",
    { cause },
  );
}

function socketLock(socket: string, port: number | null): string {
  return join(socket, `.s.PGSQL.${port ?? DEFAULT_PORT}.lock`);
}

function serverSettings(socket: string, port: number | null): Record<string, string> {
  const memory = Math.min(process.constrainedMemory() || totalmem(), totalmem());
  const sharedMegabytes = Math.max(32, Math.min(1024, Math.floor(memory / 4 / 2 ** 20)));
  return {
    listen_addresses: port === null ? "" : "127.0.0.1",
    port: String(port ?? DEFAULT_PORT),
    unix_socket_directories: socket,
    unix_socket_permissions: "0700",
    wal_level: "logical",
    max_wal_senders: "20",
    max_replication_slots: "20",
    max_slot_wal_keep_size: "1GB",
    max_connections: "100",
    shared_buffers: `${sharedMegabytes}MB`,
    max_wal_size: "2GB",
    random_page_cost: "1.1",
    jit: "off",
    // "log" ranks above "error": a client's refused statement is no news for the server's log.
    log_min_messages: "log",
    log_checkpoints: "off",
    ...(reportsSyncfsErrors() && { recovery_init_sync_method: "syncfs" }),
  };
}

/** After a crash all files are synced by one call, where file by file takes a second and more. Linux 5.8 and later tell its errors. */
function reportsSyncfsErrors(): boolean {
  if (process.platform !== "linux") return false;
  const [major = 0, minor = 0] = kernelRelease().split(".").map(Number);
  return major > 5 || (major === 5 && minor >= 8);
}

/**
 * Ready when Postgres says so; after a crash it first replays what was committed, which may take a while.
 * `ended` tells how the server ended, in its own last words.
 */
async function becomeReady(server: ChildProcess, tell: (step: string) => void): Promise<{ ended: Promise<string> }> {
  const lastWords: string[] = [];
  const ready = Promise.withResolvers<void>();
  server.once("error", ready.reject);
  server.stdout!.resume();
  createInterface({ input: server.stderr! }).on("line", (line) => {
    lastWords.push(line);
    if (lastWords.length > 20) lastWords.shift();
    if (line.includes("ready to accept connections")) ready.resolve();
    if (line.includes("was not properly shut down")) tell("recovering after an unclean stop");
  });
  const ended = once(server, "close").then(([code, signal]) => `exit ${signal ?? code}:\n${lastWords.join("\n")}`);
  await Promise.race([
    ready.promise,
    ended.then((how) => {
      throw new Error(`The embedded Postgres did not start, ${how}`);
    }),
  ]);
  return { ended };
}

/**
 * A small shell waits on a pipe whose other end this process holds: the pipe closes when this process ends, even by
 * kill -9, and then the shell ends Postgres in good order. It goes with the server, whose number may be another's afterwards.
 */
function endWithParent(server: ChildProcess): void {
  if (server.pid === undefined) return;
  const watcher = spawn("/bin/sh", ["-c", `cat >/dev/null; kill -INT ${server.pid}`], {
    detached: true,
    stdio: ["pipe", "ignore", "ignore"],
  });
  watcher.unref();
  (watcher.stdin as Socket).unref();
  server.once("exit", () => {
    if (watcher.pid !== undefined && watcher.exitCode === null) signal(-watcher.pid, "SIGKILL");
  });
}
