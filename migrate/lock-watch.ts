import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import type pg from "pg";
import { withServiceClient } from "#postgres/client";

/** A session that holds a lock that a migration waits for. Postgres shows other roles' sessions only to `pg_read_all_stats`. */
export type LockHolder = {
  readonly pid: number;
  readonly application: string;
  readonly login: string | null;
  readonly state: string | null;
  /** The start of the holder's transaction. */
  readonly since: string | null;
};

export type LockWait = {
  /** Null for the lock of a row or of another object. */
  readonly table: string | null;
  /** The table of the row for whose lock the migration waited. */
  readonly tableOfRow: string | null;
  readonly mode: string;
  readonly holders: readonly LockHolder[];
};

/** The observations while a migration ran. */
export type SeenLocks = {
  /** The last lock that it waited for. */
  wait: LockWait | null;
  /** The table whose reads the migration blocked for too long, so that it was cancelled. */
  heldTable: string | null;
};

/** The migration's `application_name`, by which it is found. */
export type MigrationSession = { readonly applicationName: string };

const POLL_MS = 50;

const WAITS = `
  select case lock.locktype when 'relation' then lock.relation::pg_catalog.regclass::pg_catalog.text end as table, lock.mode, (
    select relation::pg_catalog.regclass::pg_catalog.text from pg_catalog.pg_locks as held
    where held.pid = migration.pid and held.locktype = 'tuple' limit 1) as "tableOfRow", (
    select coalesce(pg_catalog.json_agg(pg_catalog.json_build_object('pid', pid, 'application', application_name, 'login', usename,
      'state', state, 'since', pg_catalog.date_trunc('second', xact_start)) order by pid), '[]')
    from pg_catalog.pg_stat_activity where pid = any (pg_catalog.pg_blocking_pids(migration.pid))) as holders
  from pg_catalog.pg_stat_activity as migration join pg_catalog.pg_locks as lock on lock.pid = migration.pid and not lock.granted
  where migration.application_name = $1 and migration.datname = pg_catalog.current_database()`;

/** Reads blocked by a migration. If the migration itself waits, others wait no longer than its lock_timeout. */
const HELD_READS = `
  select migration.pid, waiting.relation::pg_catalog.regclass::pg_catalog.text as table
  from pg_catalog.pg_stat_activity as migration join pg_catalog.pg_locks as waiting on not waiting.granted
  where migration.application_name = $1 and migration.datname = pg_catalog.current_database()
    and migration.wait_event_type is distinct from 'Lock' and waiting.mode = 'AccessShareLock'
    and waiting.waitstart < pg_catalog.clock_timestamp() - pg_catalog.make_interval(secs => $2::pg_catalog.float8 / 1000)
    and migration.pid = any (pg_catalog.pg_blocking_pids(waiting.pid)) limit 1`;

/** Watches a migration from another session while the work runs it. Cancels it when reads have waited for it longer than `maxHoldMs`; 0: never. */
export async function withLockWatch<T>(
  url: string,
  maxHoldMs: number,
  work: (session: MigrationSession) => Promise<T>,
): Promise<SeenLocks & { readonly result: T }> {
  const applicationName = `content-service migrate ${randomUUID()}`;
  const seen: SeenLocks = { wait: null, heldTable: null };
  return withServiceClient(url, async (client) => {
    const ended = new AbortController();
    // A migration does not fail because it cannot be watched.
    const watching = watch(client, { applicationName, maxHoldMs, seen, signal: ended.signal }).catch(() => {});
    const stop = () => {
      ended.abort();
      return watching;
    };
    const result = await work({ applicationName }).finally(stop);
    return { ...seen, result };
  });
}

type WatchOptions = MigrationSession & {
  readonly maxHoldMs: number;
  readonly seen: SeenLocks;
  readonly signal: AbortSignal;
};

async function watch(client: pg.ClientBase, { applicationName, maxHoldMs, seen, signal }: WatchOptions): Promise<void> {
  while (!signal.aborted) {
    const { rows: waits } = await client.query<LockWait>(WAITS, [applicationName]);
    // A holder may have ended between the reads of the two views.
    if (waits[0]) seen.wait = waits[0].holders.length > 0 ? waits[0] : (seen.wait ?? waits[0]);
    if (maxHoldMs > 0) await cancelHolder(client, { applicationName, maxHoldMs, seen });
    await sleep(POLL_MS, null, { signal }).catch(() => {});
  }
}

async function cancelHolder(
  client: pg.ClientBase,
  { applicationName, maxHoldMs, seen }: Omit<WatchOptions, "signal">,
): Promise<void> {
  const { rows } = await client.query<{ pid: number; table: string }>(HELD_READS, [applicationName, maxHoldMs]);
  const held = rows[0];
  if (!held) return;
  const { rows: cancelled } = await client.query<{ done: boolean }>("select pg_catalog.pg_cancel_backend($1) as done", [
    held.pid,
  ]);
  if (cancelled[0]!.done) seen.heldTable = held.table;
}
