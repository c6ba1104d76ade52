import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { chmod, mkdtemp, readdir, rm, symlink, unlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type pg from "pg";
import type { Cluster } from "../cluster/embedded/cluster.ts";
import { withClient } from "../postgres/client/with-client.ts";
import { postmasterOf } from "./postmaster.ts";
import { serverBinaries, startServer } from "./server-binaries.ts";
import { caughtUp, copyCluster, startStandby } from "./standby.ts";
import { until } from "./until.ts";

type Server = {
  /** The folder of its socket. */
  readonly socket: string;
  /** Its data folder. */
  readonly data: string;
  end(signal: "SIGKILL" | "SIGINT"): Promise<void>;
};

type Standby = Server & { start(): Promise<void> };

type NewStandby = {
  /** True if it has copies of failover slots, for which Postgres 17 is needed. */
  readonly syncsSlots: boolean;
  /** True if commits wait for it. */
  readonly isSynchronous?: boolean;
};

const MAX_STANDBYS = 40;
const STANDBY_SLOT = "standby";

/** A primary, and a standby that takes its place. */
export class FailoverGroup {
  readonly #root: string;
  #primary: Server;
  #standby: Standby | null = null;
  #isCut = false;
  #count = 0;

  static async start(): Promise<FailoverGroup> {
    const root = await mkdtemp(join(tmpdir(), "failover-"));
    await chmod(root, 0o755);
    const dataDir = join(root, "first");
    const cluster = await startServer({ dataDir, port: null });
    const end = async (signal: "SIGKILL" | "SIGINT") => {
      process.kill(await postmasterOf(dataDir), signal);
      await cluster.ended;
      // Gives up the claim of the folder.
      await cluster.stop();
    };
    const group = new FailoverGroup(root, { socket: join(dataDir, "socket"), data: join(dataDir, "postgres"), end });
    await symlink(join(dataDir, "socket"), group.#link);
    return group;
  }

  private constructor(root: string, primary: Server) {
    this.#root = root;
    this.#primary = primary;
  }

  /** Leads to the current primary. */
  readonly url: Cluster["url"] = (role, database) => urlOf(this.#link, role, database);

  /** Lists the first primary and its successors, so that the primary must be found. */
  readonly allServers: Cluster["url"] = (role, database) => {
    const standbys = Array.from({ length: MAX_STANDBYS }, (_, index) => this.#standbyFolder(index + 1));
    const sockets = [join(this.#root, "first/socket"), ...standbys];
    return `postgresql://${role}@/${database}?host=${sockets.join(",")}&port=5432`;
  };

  query(text: string): Promise<pg.QueryResult> {
    return withClient(this.url("postgres", "postgres"), (client) => client.query(text));
  }

  async addStandby({ syncsSlots, isSynchronous = false }: NewStandby): Promise<void> {
    const data = this.#standbyFolder(++this.#count);
    await this.query(`select pg_create_physical_replication_slot('${STANDBY_SLOT}', true)`);
    await copyCluster(this.url("postgres", "postgres"), this.#primary.data, data);
    // Slots belong to a server, so pg_basebackup leaves them out too.
    for (const slot of await readdir(join(data, "pg_replslot")))
      await rm(join(data, "pg_replslot", slot), { recursive: true });
    for (const name of await readdir(data)) if (name.startsWith(".s.PGSQL")) await rm(join(data, name));
    const primary = this.#primary.socket;
    const { major } = await serverBinaries();
    const more = {
      primary_conninfo: `host=${primary} port=5432 user=postgres dbname=postgres application_name=standby`,
      primary_slot_name: STANDBY_SLOT,
      hot_standby_feedback: "on",
      ...(major >= 17 && { sync_replication_slots: syncsSlots ? "on" : "off" }),
      wal_receiver_status_interval: "1",
      max_replication_slots: "20",
      max_slot_wal_keep_size: "1GB",
    };
    const start = () => startStandby({ folder: data, sockets: data, primary, more });
    let server = await start();
    this.#standby = {
      socket: data,
      data,
      end: (signal) => endServer(server, signal),
      start: async () => {
        server = await start();
      },
    };
    if (isSynchronous) await this.#set("synchronous_standby_names", "standby");
  }

  /** Resolves when the standby has a copy of the slot that keeps changes. */
  async slotSynced(): Promise<void> {
    const isSynced = `select from pg_replication_slots where slot_type = 'logical' and synced and not temporary
      and invalidation_reason is null`;
    await until(async () => {
      // A slot is copied when the standby is not behind it, which takes writes.
      await this.query(`select pg_replication_slot_advance(slot_name, pg_current_wal_flush_lsn()) from pg_replication_slots
        where slot_type = 'logical' and not temporary and not active; select pg_log_standby_snapshot()`);
      return withClient(urlOf(this.#standby!.socket, "postgres", "postgres"), async (client) => {
        const { rowCount } = await client.query(isSynced);
        return rowCount! > 0;
      });
    });
  }

  caughtUp(): Promise<void> {
    return caughtUp(this.url("postgres", "postgres"), urlOf(this.#standby!.socket, "postgres", "postgres"));
  }

  /** Stops the standby: writes from now on are lost with the primary. */
  async cutStandby(): Promise<void> {
    await this.#standby!.end("SIGINT");
    this.#isCut = true;
  }

  /** The primary ends, crashed or shut down, and the standby takes its place. */
  async failOver(how: "crash" | "shutdown"): Promise<void> {
    const former = this.#primary;
    await former.end(how === "crash" ? "SIGKILL" : "SIGINT");
    const standby = this.#standby!;
    if (this.#isCut) await standby.start();
    this.#isCut = false;
    await withClient(urlOf(standby.socket, "postgres", "postgres"), (client) => client.query("select pg_promote()"));
    await unlink(this.#link);
    await symlink(standby.socket, this.#link);
    this.#primary = standby;
    this.#standby = null;
    await rm(former.data, { recursive: true });
  }

  async stop(): Promise<void> {
    await this.#standby?.end("SIGINT");
    await this.#primary.end("SIGINT");
    await rm(this.#root, { recursive: true });
  }

  #standbyFolder(index: number): string {
    return join(this.#root, `standby-${index}`);
  }

  get #link(): string {
    return join(this.#root, "current");
  }

  async #set(name: string, value: string): Promise<void> {
    await this.query(`alter system set ${name} = '${value}'`);
    await this.query("select pg_reload_conf()");
    await until(async () => (await this.query(`show ${name}`)).rows[0][name] === value);
  }
}

function urlOf(socket: string, role: string, database: string): string {
  return `postgresql://${role}@/${database}?host=${socket}&port=5432`;
}

async function endServer(server: ChildProcess, signal: "SIGKILL" | "SIGINT"): Promise<void> {
  if (server.exitCode !== null || server.signalCode !== null) return;
  const ended = once(server, "exit");
  server.kill(signal);
  await ended;
}
