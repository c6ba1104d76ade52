import { type ChildProcess, execFile } from "node:child_process";
import { once } from "node:events";
import { mkdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { promisify } from "node:util";
import type { Cluster } from "../cluster/embedded/cluster.ts";
import { chooseAccount, chownTo, spawnAs } from "../cluster/embedded/processes.ts";
import { withClient } from "../postgres/client/with-client.ts";
import { serverBinaries, startServer } from "./server-binaries.ts";
import { until } from "./until.ts";

export type Pair = {
  readonly primary: Cluster["url"];
  readonly standby: Cluster["url"];
  /** One connection string with both servers, the primary first. */
  readonly both: Cluster["url"];
  /** Resolves when the standby has replayed all that the primary has written. */
  caughtUp(): Promise<void>;
  /** The standby's server ends at once, as if its machine had lost power. */
  killStandby(): Promise<void>;
  startStandby(): Promise<void>;
  /** The primary ends in an orderly way: the standby has received all that it has written. */
  stopPrimary(): Promise<void>;
  /** The standby becomes the primary. */
  promoteStandby(): Promise<void>;
  /** The server that was the primary comes back, at its former address, as a standby of the promoted one. */
  startFormerPrimary(): Promise<void>;
  stop(): Promise<void>;
};

/** A primary and a streaming replica of it, which was copied while the primary ran. */
export async function startPair(root: string): Promise<Pair> {
  const dataDir = join(root, "primary");
  const primary = await startServer({ dataDir, port: null });
  const source = primary.url("postgres", "postgres");
  const folder = join(root, "standby");
  const standby: Cluster["url"] = (role, database) => `postgresql://${role}@/${database}?host=${folder}&port=5432`;
  await copyCluster(source, join(dataDir, "postgres"), folder);
  const sockets = join(dataDir, "socket");
  const followPrimary = () => startStandby({ folder, sockets: folder, primary: sockets });
  let server = await followPrimary();
  let former: ChildProcess | null = null;
  return {
    primary: primary.url,
    standby,
    both: (role, database) => `postgresql://${role}@/${database}?host=${sockets},${folder}&port=5432`,
    caughtUp: () => caughtUp(source, standby("postgres", "postgres")),
    killStandby: () => killServer(server),
    async startStandby() {
      server = await followPrimary();
    },
    stopPrimary: () => primary.stop(),
    async promoteStandby() {
      await withClient(standby("postgres", "postgres"), (client) => client.query("select pg_promote()"));
    },
    async startFormerPrimary() {
      const data = join(dataDir, "postgres");
      await writeFile(join(data, "standby.signal"), "");
      await chownTo(await chooseAccount(), join(data, "standby.signal"));
      await mkdir(sockets, { recursive: true });
      await chownTo(await chooseAccount(), sockets);
      former = await startStandby({ folder: data, sockets, primary: folder });
    },
    async stop() {
      if (former) await killServer(former);
      await killServer(server);
      await primary.stop();
    },
  };
}

async function killServer(server: ChildProcess): Promise<void> {
  if (server.exitCode !== null || server.signalCode !== null) return;
  const ended = once(server, "exit");
  // Its own children find out by themselves; SIGQUIT spares the test the wait for that.
  server.kill("SIGQUIT");
  await ended;
}

/** A running server deletes files while they are copied; recovery does not need them. */
function ignoreVanished(error: Error & { readonly stderr?: string }): void {
  const lines = (error.stderr ?? "").trim().split("\n");
  if (!lines.every((line) => line.endsWith("No such file or directory"))) throw error;
}

/** Copies a cluster like pg_basebackup, which the embedded binaries lack. */
export async function copyCluster(source: string, from: string, folder: string): Promise<void> {
  const account = await chooseAccount();
  await mkdir(folder, { mode: 0o700 });
  await chownTo(account, folder);
  const { major } = await serverBinaries();
  const backup =
    major >= 15
      ? { start: "pg_backup_start('standby', true)", stop: "pg_backup_stop(false)" }
      : { start: "pg_start_backup('standby', true, false)", stop: "pg_stop_backup(false, false)" };
  await withClient(source, async (client) => {
    await client.query(`select ${backup.start}`);
    await promisify(execFile)("cp", ["-a", `${from}/.`, folder]).catch(ignoreVanished);
    const { rows } = await client.query<{ labelfile: string }>(`select labelfile from ${backup.stop}`);
    await writeFile(join(folder, "backup_label"), rows[0]!.labelfile);
  });
  await rm(join(folder, "postmaster.pid"));
  await writeFile(join(folder, "standby.signal"), "");
  for (const name of ["backup_label", "standby.signal"]) await chownTo(account, join(folder, name));
}

type StandbyOptions = {
  readonly folder: string;
  /** The folder of its socket. */
  readonly sockets: string;
  /** The folder of its primary's socket. */
  readonly primary: string;
  readonly more?: Readonly<Record<string, string>>;
};

export async function startStandby({ folder, sockets, primary, more }: StandbyOptions): Promise<ChildProcess> {
  const settings = {
    primary_conninfo: `host=${primary} port=5432 user=postgres`,
    listen_addresses: "",
    unix_socket_directories: sockets,
    max_wal_senders: "20",
    wal_level: "logical",
    log_min_messages: "log",
    shared_buffers: "32MB",
    // Queries that conflict with replay are cancelled at once.
    max_standby_streaming_delay: "0",
    ...more,
  };
  const flags = Object.entries(settings).flatMap(([name, value]) => ["-c", `${name}=${value}`]);
  const { postgres } = await serverBinaries();
  const server = await spawnAs(postgres, ["-D", folder, ...flags], await chooseAccount(), folder);
  const said: string[] = [];
  const lines = createInterface({ input: server.stderr! }).on("line", (line) => said.push(line));
  const ready = until(() => said.some((line) => line.includes("ready to accept read-only connections")));
  await Promise.race([
    ready,
    once(server, "exit").then(() => {
      throw new Error(said.join("\n"));
    }),
  ]);
  lines.removeAllListeners("line");
  server.stderr!.resume();
  return server;
}

export async function caughtUp(primary: string, standby: string): Promise<void> {
  const place = await withClient(primary, async (client) => {
    const { rows } = await client.query<{ place: string }>("select pg_current_wal_flush_lsn()::text as place");
    return rows[0]!.place;
  });
  await withClient(standby, (client) =>
    until(async () => {
      const { rows } = await client.query("select pg_last_wal_replay_lsn() >= $1::pg_lsn as done", [place]);
      return rows[0].done;
    }),
  );
}
