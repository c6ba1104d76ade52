import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { chmod, mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import { endWithParent, processesIn, signal } from "#cluster/embedded";

const START = join(import.meta.dirname, "../../deploy/ha/start.sh");
const PROGRAMS = ["/usr/bin/patroni", "/usr/bin/etcd", "/usr/sbin/haproxy", "/usr/lib/postgresql/15/bin/postgres"];
/** Short enough that a killed leader is replaced, and does not return before that. */
const TTL_SECONDS = 5;
const SEGMENT = /^[0-9A-F]{24}$/;
const RESTART_SECONDS = 8;
/** Longer than a standby needs to follow a new leader. */
const REPAIR_SECONDS = 15;
const LOOK_MS = 50;
const LONGEST_STOP_MS = 30_000;
const NODES = ["a", "b", "c"];
const REWINDING = "running pg_rewind from";

export type Settings = Readonly<Record<string, string>>;

/** The cluster of `deploy/ha`. */
export type PatroniCluster = AsyncDisposable & {
  readonly folder: string;
  /** The settings of the service, with connection strings that name all nodes; `haproxy` has those of HAProxy. */
  readonly hosts: Settings;
  readonly haproxy: Settings;
  /** The URL of the gateways behind HAProxy. */
  readonly gatewayUrl: string;
  readonly gatewayHost: string;
  readonly gatewayPorts: readonly number[];
  /** The node that accepts writes; null if none does, or two do. */
  leader(): Promise<string | null>;
  /** Ends all processes of a node, or Patroni only, like `kill -9`. */
  kill(node: string, what: "node" | "patroni"): Promise<void>;
  /** Resolves when a killed node is being rewound with pg_rewind, or is back without it. */
  rewinding(node: string): Promise<void>;
  /** Kills a standby and removes the WAL that it needs from the leader before it is started again. */
  removeWal(standby: string): Promise<void>;
  /** Hands over to another node that Patroni selects. */
  switchover(leader: string): Promise<void>;
  /** Resolves when two standbys follow the leader, one of them synchronously. */
  healthy(): Promise<void>;
  /** Returns the number of times that a standby could no longer follow and was copied again. */
  copies(): Promise<number>;
  /** Returns the sessions of the service that stay on nodes without writes; it also connects to these to look for the primary. */
  sessionsOnStandbys(): Promise<number>;
  /** Runs SQL as the superuser on the leader. */
  execute(sql: string): Promise<pg.QueryResult>;
};

export const isInstalled = PROGRAMS.every((path) => existsSync(path));
export const MISSING = `not installed: ${PROGRAMS.filter((path) => !existsSync(path)).join(", ")}`;

export async function startPatroniCluster(): Promise<PatroniCluster> {
  const folder = await mkdtemp(join(tmpdir(), "content-service-ha-"));
  await chmod(folder, 0o711);
  // Each cluster on this machine has its own addresses.
  const network = `127.${60 + (process.pid % 60)}.${1 + (Math.floor(process.pid / 60) % 250)}`;
  const gatewayPorts = [3001, 3002, 3003];
  const [GATEWAY_A, GATEWAY_B, GATEWAY_C] = gatewayPorts.map((port) => `${network}.10:${port}`) as [
    string,
    string,
    string,
  ];
  const script = spawn(START, [], {
    env: {
      PATH: process.env.PATH,
      HA_DIR: folder,
      HA_NETWORK: network,
      HA_TTL: String(TTL_SECONDS),
      HA_RESTART: String(RESTART_SECONDS),
      REPAIR_AFTER: String(REPAIR_SECONDS),
      ...{ GATEWAY_A, GATEWAY_B, GATEWAY_C },
    },
    stdio: ["ignore", "pipe", "pipe"],
  });
  endWithParent(script, "SIGTERM");
  const ended = once(script, "exit");
  const stop = async () => {
    script.kill("SIGTERM");
    if (script.exitCode === null && script.signalCode === null) await Promise.race([ended, sleep(LONGEST_STOP_MS)]);
    await killRest(folder, script);
    await rm(folder, { recursive: true, force: true });
  };
  let said = "";
  script.stderr.on("data", (chunk) => (said += chunk));
  const ready = new Promise<void>((resolve) => {
    script.stdout.on("data", (chunk) => String(chunk).startsWith("ready") && resolve());
  });
  const failed = ended.then(() => {
    throw new Error(`${START} ended before it was ready:\n${said}`);
  });
  try {
    await Promise.race([ready, failed]);
  } catch (error) {
    await stop();
    throw error;
  }
  failed.catch(() => {});
  const password = await readFile(join(folder, "password"), "utf8");
  const url = (node: string, database = "content") =>
    `postgresql://postgres:${password}@${network}.${NODES.indexOf(node) + 1}:5432/${database}`;
  return {
    folder,
    hosts: await settingsIn(join(folder, "hosts.env")),
    haproxy: await settingsIn(join(folder, "haproxy.env")),
    gatewayUrl: `http://${network}.10:8000`,
    gatewayHost: `${network}.10`,
    gatewayPorts,
    ...operations(folder, url, (node) => `http://${network}.${NODES.indexOf(node) + 1}:8008`),
    [Symbol.asyncDispose]: stop,
  };
}

/** Kills the processes that remain after a killed script, or after a Patroni that cannot stop its Postgres. */
async function killRest(folder: string, script: ChildProcess): Promise<void> {
  script.kill("SIGKILL");
  const folders = [folder, ...NODES.flatMap((node) => [join(folder, node), join(folder, node, "data")])];
  const working = async () => (await Promise.all(folders.map(processesIn))).flat();
  for (let left = await working(); left.length > 0; left = await working()) {
    for (const pid of left) signal(pid, "SIGKILL");
    await sleep(LOOK_MS);
  }
}

type AddressOf = (node: string) => string;

function operations(folder: string, urlOf: AddressOf, patroniOf: AddressOf) {
  const leader = async () => {
    const states = await Promise.all(NODES.map((node) => isPrimary(urlOf(node))));
    const primaries = NODES.filter((_, index) => states[index]);
    return primaries.length === 1 ? primaries[0]! : null;
  };
  return {
    leader,
    async kill(node: string, what: "node" | "patroni") {
      const patroni = await processesIn(join(folder, node));
      const postgres = what === "node" ? await processesIn(join(folder, node, "data")) : [];
      // The loops that start Patroni again and repair standbys keep running.
      const commands = await Promise.all(
        patroni.map((pid) => readFile(`/proc/${pid}/cmdline`, "utf8").catch(() => "")),
      );
      const programs = patroni.filter((_, index) => !/(start|repair-standby)\.sh/.test(commands[index]!));
      for (const pid of [...programs, ...postgres]) signal(pid, "SIGKILL");
    },
    async rewinding(node: string) {
      const count = async () => (await readFile(join(folder, node, "patroni.log"), "utf8")).split(REWINDING).length;
      const before = await count();
      while ((await count()) === before && !(await isHealthy(patroniOf))) await sleep(LOOK_MS);
    },
    async removeWal(node: string) {
      await this.kill(node, "node");
      const write = "select pg_logical_emit_message(true, '', ''), pg_switch_wal()";
      for (let segment = 0; segment < 2; segment++) await this.execute(write);
      const { rows } = await this.execute("select pg_walfile_name(pg_current_wal_lsn()) as current");
      const wal = join(folder, (await this.leader())!, "data/pg_wal");
      const old = (await readdir(wal)).filter((name) => SEGMENT.test(name) && name < rows[0].current);
      for (const name of old) await rm(join(wal, name));
    },
    async switchover(node: string) {
      const request = { method: "POST", body: JSON.stringify({ leader: node }) };
      const isDone = async () => (await fetch(`${patroniOf(node)}/switchover`, request).catch(() => null))?.ok;
      // Patroni refuses a switchover until a standby has caught up.
      while (!(await isDone()) && (await leader()) === node) await sleep(LOOK_MS);
    },
    async healthy() {
      while (!(await isHealthy(patroniOf))) await sleep(LOOK_MS);
    },
    async copies() {
      const logs = NODES.map((node) => readFile(join(folder, node, "repair.log"), "utf8").catch(() => ""));
      return (await Promise.all(logs)).join("").split("is copied again").length - 1;
    },
    async sessionsOnStandbys() {
      const counts = await Promise.all(NODES.map((node) => countSessions(urlOf(node))));
      return counts.reduce((sum, count) => sum + count, 0);
    },
    async execute(sql: string) {
      const node = await leader();
      if (!node) throw new Error("No node accepts writes.");
      return query(urlOf(node), sql);
    },
  };
}

type Member = { readonly role: string; readonly state: string; readonly timeline: number };

/** True if Patroni reports a healthy cluster: it only promotes the synchronous standby. */
async function isHealthy(patroniOf: AddressOf): Promise<boolean> {
  for (const node of NODES) {
    const response = await fetch(`${patroniOf(node)}/cluster`).catch(() => null);
    if (!response?.ok) return false;
    const { members } = (await response.json()) as { members: readonly Member[] };
    const roles = members.map(({ role }) => role).toSorted();
    if (roles.join() !== "leader,replica,sync_standby") return false;
    if (members.some(({ state, timeline }) => state !== "running" || timeline !== members[0]!.timeline)) return false;
  }
  return true;
}

async function countSessions(url: string): Promise<number> {
  const { rows } = await query(
    url,
    "select count(*)::int as count from pg_stat_activity where usename in ('authenticator', 'owner') and backend_start < now() - interval '2 seconds' and pg_is_in_recovery()",
  ).catch(() => ({ rows: [{ count: 0 }] }));
  return rows[0].count;
}

/** True if the server accepts writes; also after a kill, while its port is still open. */
async function isPrimary(url: string): Promise<boolean> {
  const { rows } = await query(url, "select not pg_is_in_recovery() as primary").catch(() => ({ rows: [] }));
  return rows[0]?.primary ?? false;
}

async function query(connectionString: string, sql: string): Promise<pg.QueryResult> {
  const client = new pg.Client({ connectionString, connectionTimeoutMillis: 1_000 });
  client.on("error", () => {});
  await client.connect();
  try {
    return await client.query(sql);
  } finally {
    await client.end().catch(() => {});
  }
}

async function settingsIn(file: string): Promise<Settings> {
  const text = await readFile(file, "utf8");
  return Object.fromEntries([...text.matchAll(/^(\w+)='(.*)'$/gm)].map(([, name, value]) => [name!, value!]));
}
