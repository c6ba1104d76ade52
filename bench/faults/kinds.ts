import { readdir, readFile } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import type pg from "pg";
import type { FaultySystem } from "./system.ts";

export type FaultKind = {
  readonly isKill: boolean;
  /** The number of times that the fault occurs in a round. */
  readonly times: number;
  /** Breaks a part and repairs it like an operator; does not touch a service that still runs. */
  run(system: FaultySystem): Promise<void>;
};

const OTHERS = "pid <> pg_backend_pid() and backend_type in ('client backend', 'walsender')";
const END_ALL = `select pg_terminate_backend(pid) from pg_stat_activity where ${OTHERS}`;
const KILLS_PER_ROUND = 4;
const LASTS_MS = 3_000;
const kill = (run: FaultKind["run"]): FaultKind => ({ isKill: true, times: KILLS_PER_ROUND, run });
const fault = (run: FaultKind["run"]): FaultKind => ({ isKill: false, times: 1, run });

/** Changes a database setting for new sessions; ends the sessions before, and on request afterwards. */
const withSetting = (setting: string, isEndedAfterwards: boolean) =>
  fault(async ({ execute }) => {
    const [name] = setting.split(" ");
    await execute(`alter database content set ${setting}`);
    try {
      await execute(END_ALL);
      await sleep(LASTS_MS);
    } finally {
      await execute(`alter database content reset ${name}`);
    }
    if (isEndedAfterwards) await execute(END_ALL);
  });

const withLocks = (tables: string) =>
  fault(async ({ connect }) => {
    const locker = await connect();
    await locker.query(`begin; set local lock_timeout = '20s'; lock table ${tables} in access exclusive mode`);
    await sleep(2 * LASTS_MS);
    await locker.end();
  });

export const FAULTS = {
  "service killed": kill(async (system) => {
    await system.killService();
    await system.startService();
  }),
  "worker killed": kill(async (system) => {
    const workers = await childrenOf(system.service());
    process.kill(workers[Math.floor(Math.random() * workers.length)] ?? system.service(), "SIGKILL");
    if (workers.length === 0) await system.startService();
  }),
  "backend killed": kill(async ({ execute }) => {
    const { rows } = await execute(`select pid from pg_stat_activity where ${OTHERS} order by random() limit 1`);
    process.kill(rows[0].pid, "SIGKILL");
  }),
  "Postgres killed": kill(async (system) => {
    await system.signalPostgres("SIGKILL");
    await system.startPostgres();
  }),
  "Postgres stopped at once": kill(async (system) => {
    await system.signalPostgres("SIGQUIT");
    await system.startPostgres();
  }),
  "sessions ended": fault(async ({ execute }) => void (await execute(END_ALL))),
  "sessions ended again and again": fault(async ({ execute }) => {
    for (let times = 0; times < 10; times++) {
      await execute(END_ALL);
      await sleep(LASTS_MS / 10);
    }
  }),
  "connections exhausted": fault(exhaustConnections),
  "catalogue locked": withLocks("pg_catalog.pg_proc"),
  "queue locked": withLocks(
    "content_service.tasks, graphile_worker._private_jobs, graphile_worker._private_known_crontabs",
  ),
  "webhooks locked": withLocks("api.webhooks, content_service.webhook_deliveries"),
  "read-only": withSetting("default_transaction_read_only = on", true),
  "read-only, sessions kept": withSetting("default_transaction_read_only = on", false),
  "statement timeout": withSetting("statement_timeout = '5ms'", true),
  "Postgres paused": fault(async (system) => {
    const postmaster = await system.postmaster();
    await paused([postmaster, ...(await childrenOf(postmaster))]);
  }),
  "service paused": fault(async (system) => paused([system.service(), ...(await childrenOf(system.service()))])),
  "slot dropped": fault(async ({ execute }) => {
    await execute(`select pg_terminate_backend(active_pid) from pg_replication_slots where active_pid is not null`);
    await execute(`select pg_drop_replication_slot(slot_name) from pg_replication_slots where not active`);
  }),
  "WAL of the slot removed": fault(removeWal),
  "bloat without autovacuum": fault(async ({ execute }) => {
    await execute("alter table graphile_worker._private_jobs set (autovacuum_enabled = off)");
    await execute("select graphile_worker.add_job('bloat', run_at := now() + '1 hour') from generate_series(1, 20000)");
    await execute("delete from graphile_worker._private_jobs where run_at > now() + '30 minutes'");
    await execute("alter table graphile_worker._private_jobs reset (autovacuum_enabled)");
  }),
} satisfies Readonly<Record<string, FaultKind>>;

export type FaultName = keyof typeof FAULTS;

/** Opens as many sessions as the server allows, and ends the sessions of the service. */
async function exhaustConnections({ connect, execute }: FaultySystem): Promise<void> {
  const held: pg.Client[] = [];
  const end = performance.now() + LASTS_MS;
  const hold = async () => {
    for (;;) held.push(await connect());
  };
  while (performance.now() < end) {
    await hold().catch(() => {});
    const own = held[0]!;
    const pids = held.map((client) => (client as pg.Client & { processID: number }).processID).join();
    await own.query(`select pg_terminate_backend(pid) from pg_stat_activity where ${OTHERS} and pid not in (${pids})`);
  }
  await Promise.all(held.map((client) => client.end()));
  await execute("select");
}

async function removeWal({ execute }: FaultySystem): Promise<void> {
  await execute("alter system set max_slot_wal_keep_size = '1MB'");
  await execute("select pg_reload_conf()");
  try {
    for (let segment = 0; segment < 4; segment++) {
      await execute("select pg_logical_emit_message(false, 'bench', repeat('x', 1000000)) from generate_series(1, 8)");
      await execute("select pg_switch_wal()");
    }
    await execute("checkpoint");
  } finally {
    await execute("alter system reset max_slot_wal_keep_size");
    await execute("select pg_reload_conf()");
  }
}

async function paused(pids: readonly number[]): Promise<void> {
  const signal = (name: NodeJS.Signals) => {
    for (const pid of pids) trySignal(pid, name);
  };
  signal("SIGSTOP");
  await sleep(2 * LASTS_MS);
  signal("SIGCONT");
}

/** Sends a signal to a process, which may have ended by itself. */
function trySignal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
  }
}

async function childrenOf(pid: number): Promise<number[]> {
  const processes = (await readdir("/proc")).filter((name) => /^\d+$/.test(name));
  const parents = await Promise.all(
    processes.map(async (name) => {
      const status = await readFile(`/proc/${name}/status`, "utf8").catch(() => "");
      return { pid: Number(name), parent: Number(/^PPid:\s+(\d+)/m.exec(status)?.[1]) };
    }),
  );
  return parents.filter(({ parent }) => parent === pid).map((child) => child.pid);
}
