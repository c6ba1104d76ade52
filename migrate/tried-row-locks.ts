import type pg from "pg";
import { withServiceClient } from "#postgres/client";
import { listLockableTables, type RowLockFinder } from "./row-locks.ts";

/** Nobody else uses the copy: a session that waits this long waits for the migration. */
const LOCK_TIMEOUT_MS = 2000;

/**
 * Finds rows that a transaction locks: another session tries to lock them as an update would, and skips those that it cannot lock. This is exact
 * for every cause of a lock: a function, a trigger, a cascade or a statement that has changed nothing. A row's `xmax`, which every
 * lock sets, does not say who holds it, how strongly, and if it is still held; but a row without one is free and need not be tried.
 * The rows of the copy are committed, so the other session sees them as they were before the migration.
 *
 * Rows that others refer to by foreign keys are locked `for key share`, which updates do not wait for.
 */
export function withTriedRowLocks<T>(url: string, work: (find: RowLockFinder) => Promise<T>): Promise<T> {
  return withServiceClient(url, async (client) => {
    await client.query(
      "select pg_catalog.set_config('lock_timeout', $1, false), pg_catalog.set_config('row_security', 'off', false)",
      [String(LOCK_TIMEOUT_MS)],
    );
    const known = new Map<number, number>();
    return work(async (states) => {
      const found = new Map<number, number>();
      for (const { table, newModes, isRead, inserts, changes } of listLockableTables(states)) {
        const insertsOnly = inserts && !isRead && !changes && !newModes.includes("RowShareLock");
        if (insertsOnly) continue;
        const rows = await countLockedRows(client, table.oid);
        if (rows > 0 && (changes || rows > (known.get(table.oid) ?? 0))) found.set(table.oid, rows);
        known.set(table.oid, rows);
      }
      return found;
    });
  });
}

/** A table that this session may not read or lock counts as one locked row. */
async function countLockedRows(client: pg.ClientBase, oid: number): Promise<number> {
  await client.query("begin");
  try {
    // This session sees the name from before the migration.
    const { rows: names } = await client.query<{ name: string }>(
      `select pg_catalog.format('%I.%I', nspname, relname) as name
       from pg_catalog.pg_class as class join pg_catalog.pg_namespace as namespace on namespace.oid = relnamespace
       where class.oid = $1 and relpersistence <> 't'`,
      [oid],
    );
    if (names.length === 0) return 0;
    const { rows } = await client.query<{ locked: number }>(lockedRowsSql(names[0]!.name));
    return rows[0]!.locked;
  } catch {
    return 1;
  } finally {
    await client.query("rollback");
  }
}

function lockedRowsSql(table: string): string {
  return `with candidate as materialized (select ctid as place from only ${table} where xmax <> '0'),
    free as materialized (
      select from only ${table} as stored join candidate on stored.ctid = candidate.place for no key update of stored skip locked)
    select ((select pg_catalog.count(*) from candidate) - (select pg_catalog.count(*) from free))::pg_catalog.float8 as locked`;
}
