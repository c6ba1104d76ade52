import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdir, readFile } from "node:fs/promises";
import { totalmem } from "node:os";
import { join, resolve } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { retryDelay } from "#runtime/concurrency";
import {
  acquireFile,
  type ClusterFolders,
  clusterFolders,
  createFolders,
  findFileOwner,
  releaseFolders,
} from "./cluster-folders.ts";
import { type Binaries, checkCluster, createCluster, findBinaries, finishUpgrade } from "./create-cluster.ts";
import {
  chooseAccount,
  endWithParent,
  parentOf,
  processesIn,
  readPid,
  removeStaleLock,
  spawnAs,
  stopOrphans,
} from "./processes.ts";
import { reportsSyncfsErrors } from "./sync-folder.ts";

const DEFAULT_PORT = 5432;

export type Cluster = {
  /** Returns a connection string over the unix socket. */
  url(role: string, database: string): string;
  /** Resolves with the reason when the server exits. */
  readonly ended: Promise<string>;
  stop(): Promise<void>;
};

export type ClusterOptions = {
  readonly dataDir: string;
  /** The port of 127.0.0.1 that is also used, with a password; null for the unix socket only. */
  readonly port: number | null;
  /** Server settings that override the defaults. */
  readonly settings?: Readonly<Record<string, string>>;
  /** The Postgres binaries; the default is those that npm installed. */
  readonly binaries?: Binaries;
  /** Reports progress to the user. */
  readonly tell: (step: string) => void;
  /** Runs when another process takes over the slow part: initdb, or the server. */
  readonly onSpawned?: () => void;
};

/** Starts the embedded Postgres; it stops when this process ends, even by kill -9. */
export async function startCluster(options: ClusterOptions): Promise<Cluster> {
  const folders = clusterFolders(options.dataDir);
  const claimant = await claimFolder(folders, options.dataDir);
  const owner = claimant ?? ((await servesItself(folders.data)) ? process.pid : null);
  if (owner !== null) {
    throw new Error(
      `${resolve(options.dataDir)} is in use by the service with process id ${owner}. ` +
        "Stop that service first, or set DATA_DIR (and PORT) to run a second one beside it.",
    );
  }
  try {
    return await startClaimed(folders, options);
  } catch (error) {
    await releaseFolders(folders);
    throw error;
  }
}

/** Claims the folder; names the setting if the folder cannot be created or written. */
async function claimFolder({ ownerFile }: ClusterFolders, dataDir: string): Promise<number | null> {
  try {
    await mkdir(resolve(dataDir), { recursive: true });
    return await acquireFile(ownerFile);
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException;
    if (code === undefined) throw cause;
    throw new Error(
      `${resolve(dataDir)} cannot be written (${code}). ` +
        "Set DATA_DIR to a folder that this user can write to, or DATABASE_URL to your own Postgres.",
      { cause },
    );
  }
}

/** This process may have claimed the folder for a server that still runs: the claim is kept between restarts. */
async function servesItself(dataFolder: string): Promise<boolean> {
  const server = await readPid(join(dataFolder, "postmaster.pid"));
  if (server === null || !(await processesIn(dataFolder)).includes(server)) return false;
  return (await parentOf(server)) === process.pid;
}

async function startClaimed(
  folders: ClusterFolders,
  { dataDir, port, settings, tell, binaries: givenBinaries, onSpawned = () => {} }: ClusterOptions,
): Promise<Cluster> {
  const binaries = givenBinaries ?? (await findBinaries());
  const account = await chooseAccount();
  if ((await processesIn(folders.data)).length > 0) {
    tell("waiting for the Postgres of an earlier run to end");
    await stopOrphans(folders.data);
  }
  for (const lock of [join(folders.data, "postmaster.pid"), socketLock(folders.socket, port)]) {
    await removeStaleLock(lock, folders.data);
  }

  await createFolders(resolve(dataDir), folders, account);
  await finishUpgrade(folders.data);
  if (!(await checkCluster(folders.data, binaries))) {
    tell("creating the database cluster");
    await createCluster(folders.data, binaries, account, onSpawned);
  }

  const flags = Object.entries({ ...serverSettings(folders.socket, port), ...settings }).flatMap(([name, value]) => [
    "-c",
    `${name}=${value}`,
  ]);
  const server = await spawnAs(binaries.postgres, ["-D", folders.data, ...flags], account, folders.data);
  endWithParent(server, "SIGINT");
  onSpawned();
  const { ended } = await becomeReady(server, tell).catch((error: Error) => {
    throw port !== null && error.message.includes("could not create any TCP/IP sockets")
      ? portInUse(port, error)
      : error;
  });

  let stopping: Promise<void> | null = null;
  const stop = async () => {
    server.kill("SIGINT");
    await ended;
    await releaseFolders(folders);
  };
  return {
    url: (role, database) => socketUrl(folders.socket, port ?? DEFAULT_PORT, role, database),
    ended,
    stop: () => (stopping ??= stop()),
  };
}

/** Returns connection strings for the running service on this folder, once it has started; null if there is none. */
export async function runningCluster({ dataDir }: Pick<ClusterOptions, "dataDir">): Promise<Cluster["url"] | null> {
  const { data, ownerFile } = clusterFolders(dataDir);
  for (;;) {
    const owner = await findFileOwner(ownerFile);
    if (owner === null) return null;
    const lines = (await readStatus(join(data, "postmaster.pid"))).split("\n");
    const [server, , , port, socket, , , status] = lines;
    if (status?.trim() === "ready" && (await parentOf(Number(server))) === owner) {
      return (role, database) => socketUrl(socket!, Number(port), role, database);
    }
    await sleep(50);
  }
}

/** Returns an empty text until the server has written the file, which only its own user can read. */
async function readStatus(file: string): Promise<string> {
  try {
    return await readFile(file, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EACCES") return "";
    throw new Error(`${file} is not readable: run this command as the user who runs the service.`, { cause: error });
  }
}

function socketUrl(socket: string, port: number, role: string, database: string): string {
  const place = new URLSearchParams({ host: socket, port: String(port) });
  return `postgresql://${encodeURIComponent(role)}@/${encodeURIComponent(database)}?${place}`;
}

function portInUse(port: number, cause: Error): Error {
  return new Error(
    `The embedded Postgres cannot listen on port ${port} of 127.0.0.1. ` +
      "Stop the program that uses the port, or set EMBEDDED_PORT to another port, or unset it.",
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
    // "log" ranks above "error": errors of clients are not logged by the server.
    log_min_messages: "log",
    log_checkpoints: "off",
    // Crash recovery syncs all files in one call instead of one by one, which takes a second or more.
    ...(reportsSyncfsErrors() && { recovery_init_sync_method: "syncfs" }),
  };
}

/**
 * Waits until Postgres reports that it is ready; after a crash it first replays the WAL, which may take a while.
 * `ended` resolves with the exit status and the last lines of output.
 */
async function becomeReady(server: ChildProcess, tell: (step: string) => void): Promise<{ ended: Promise<string> }> {
  const lastWords: string[] = [];
  const ready = Promise.withResolvers<void>();
  server.once("error", ready.reject);
  server.stdout!.resume();
  createInterface({ input: server.stderr! }).on("line", (line) => {
    if (!REFUSED_CONNECTION.test(line)) lastWords.push(line);
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

/** Postgres reports each connection that comes while it starts or stops, which says nothing of why it exits. */
const REFUSED_CONNECTION = /\bFATAL: +the database system is /;
/** A server that exits sooner than this counts as a failed start, for example because the disk is full. */
const MIN_UPTIME_MS = 1_000;
/** Repeated start failures are reported at most this often. */
const REPORT_INTERVAL_MS = 30_000;

type SupervisedCluster = Pick<Cluster, "url" | "stop">;

/**
 * Starts the cluster and restarts it whenever it exits: immediately, because requests wait, and with growing delays while
 * starts fail (a full disk may be cleared). Gives up if another process has claimed the folder.
 */
export async function superviseCluster(
  options: ClusterOptions,
  giveUp: (reason: Error) => void,
): Promise<SupervisedCluster> {
  const { tell } = options;
  const failures = new StartFailures(options);
  let cluster = await startCluster(options);
  const stopping = new AbortController();
  const isStopping = () => stopping.signal.aborted;

  const restart = async (): Promise<Cluster | null> => {
    await failures.pause(stopping.signal);
    if (isStopping()) return null;
    return startCluster(options).catch((reason: Error) => failures.add(reason));
  };

  const superviseUntilStopped = async () => {
    while (!isStopping()) {
      const readyAt = performance.now();
      const how = await cluster.ended;
      if (isStopping()) return;
      tell(`the embedded Postgres exited unexpectedly (${reasonIn(how)}); restarting it`);
      failures.countExit(performance.now() - readyAt);
      let restarted: Cluster | null = null;
      while (!restarted && !isStopping()) restarted = await restart();
      cluster = restarted ?? cluster;
    }
  };
  const supervision = superviseUntilStopped().catch((error: Error) => giveUp(error));

  return {
    url: (...place) => cluster.url(...place),
    async stop() {
      stopping.abort();
      await cluster.stop();
      await supervision;
      // A restart may have completed in the meantime.
      await cluster.stop();
    },
  };
}

/** The failed starts since the server last ran for a while. */
class StartFailures {
  readonly #options: Pick<ClusterOptions, "tell" | "dataDir">;
  #count = 0;
  #reportedAt = Number.NEGATIVE_INFINITY;

  constructor(options: Pick<ClusterOptions, "tell" | "dataDir">) {
    this.#options = options;
  }

  async pause(signal: AbortSignal): Promise<void> {
    if (this.#count > 0) await sleep(retryDelay(this.#count), undefined, { signal }).catch(() => {});
  }

  countExit(uptimeMs: number): void {
    if (uptimeMs < MIN_UPTIME_MS) {
      this.#count++;
      return;
    }
    this.#count = 0;
    this.#reportedAt = Number.NEGATIVE_INFINITY;
  }

  /** Throws the reason if another process has claimed the folder. */
  async add(reason: Error): Promise<null> {
    const { tell, dataDir } = this.#options;
    this.#count++;
    const claimant = await findFileOwner(clusterFolders(dataDir).ownerFile);
    if (claimant !== null && claimant !== process.pid) throw reason;
    if (performance.now() - this.#reportedAt > REPORT_INTERVAL_MS) {
      this.#reportedAt = performance.now();
      tell(`the embedded Postgres could not be started (${reasonIn(reason.message)}); retrying`);
    }
    return null;
  }
}

/** Returns the line of the server's last output that gives the reason; otherwise the exit status. */
function reasonIn(words: string): string {
  const lines = words.split("\n");
  const last = (severity: string) => lines.findLast((line) => line.includes(` ${severity}: `));
  return last("PANIC") ?? last("FATAL") ?? lines[0]!;
}
