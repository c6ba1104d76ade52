import { createHash } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import type pg from "pg";
import { isLockTimeout } from "#postgres/client";
import { forEachInSlices } from "#runtime/concurrency";
import type { CatalogQuery } from "./catalog-query.ts";
import type { ExpressionKeeper } from "./locked-relations.ts";

/** The timeout exceeds the statement_timeout of the snapshot, so that it only applies to dead connections. */
const QUERY_TIMEOUT_MS = 90_000;

/**
 * An empty search path makes Postgres print qualified names; expressions are compared as it prints them without unnecessary quotes.
 * Printing takes locks in an order that a migration does not know: with a lock timeout below `deadlock_timeout`, this side of a deadlock
 * gives up, never the migration.
 */
const SNAPSHOT_SETTINGS = `
  select pg_catalog.set_config('search_path', '', true), pg_catalog.set_config('quote_all_identifiers', 'off', true),
    pg_catalog.set_config('jit', 'off', true),
    pg_catalog.set_config('statement_timeout', '60s', true),
    pg_catalog.set_config('lock_timeout', pg_catalog.format('%sms', (
      select greatest(1, least(200, setting::int operator(pg_catalog./) 4)) from pg_catalog.pg_settings
      where name operator(pg_catalog.=) 'deadlock_timeout'
    )), true)`;
/** The time for which a snapshot is retried while a migration holds its tables. */
const LOCK_PATIENCE_MS = 10_000;
const LOCK_RETRY_MS = 100;

type CatalogReader = {
  readonly read: CatalogQuery;
  /** The milliseconds per subject, including the transfer. */
  readonly timings: Readonly<Record<string, number>>;
  /** Returns the hash of all rows that were read so far. */
  contentHash(): string;
};

const ROWS_PER_HASH_UPDATE = 100;

/** The options are part of the hash, since the same rows make a different catalogue with other options. */
export function makeCatalogReader(
  client: pg.ClientBase,
  options: object,
  expressions: ExpressionKeeper,
): CatalogReader {
  const hash = createHash("sha1").update(JSON.stringify(options));
  const timings: Record<string, number> = {};

  const read: CatalogQuery = async <Row extends object>(
    subject: string,
    text: string,
    values: readonly unknown[] = [],
  ) => {
    const startedAt = performance.now();
    const rows = await queryWithoutKeepingLocks<Row>(client, text, values);
    expressions.complete(subject, rows);
    hash.update(subject);
    await forEachInSlices(chunks(rows), (chunk) => hash.update(JSON.stringify(chunk)));
    timings[subject] = (timings[subject] ?? 0) + Math.round(performance.now() - startedAt);
    return rows;
  };

  return { read, timings, contentHash: () => hash.copy().digest("hex") };
}

function* chunks<Row>(rows: readonly Row[]): Generator<readonly Row[]> {
  for (let start = 0; start < rows.length; start += ROWS_PER_HASH_UPDATE) {
    yield rows.slice(start, start + ROWS_PER_HASH_UPDATE);
  }
}

/** Runs one statement with a timeout on the client's side. */
export async function queryWithTimeout<Row extends object>(
  client: pg.ClientBase,
  text: string,
  values: readonly unknown[] = [],
  timeoutMs: number = QUERY_TIMEOUT_MS,
): Promise<Row[]> {
  const query = { text, values: [...values], query_timeout: timeoutMs };
  const { rows } = await client.query<Row & pg.QueryResultRow>(query);
  return rows;
}

const SAVEPOINT = "without_locks";

/** Runs a query within a snapshot and releases the locks that it takes. */
export async function queryWithoutKeepingLocks<Row extends object>(
  client: pg.ClientBase,
  text: string,
  values: readonly unknown[] = [],
): Promise<Row[]> {
  const rows = await queryWithTimeout<Row>(client, text, values);
  await queryWithTimeout(client, `rollback to savepoint ${SAVEPOINT}`);
  return rows;
}

type SnapshotOptions = {
  readonly lockPatienceMs?: number;
  /** Statements that change settings for the queries: the savepoint begins after them. */
  readonly settings?: readonly string[];
};

/** Runs the work in a repeatable-read transaction, and retries it while a lock is not available. */
export async function inSnapshot<Result>(
  client: pg.ClientBase,
  work: () => Promise<Result>,
  { lockPatienceMs = LOCK_PATIENCE_MS, settings = [] }: SnapshotOptions = {},
): Promise<Result> {
  const deadline = performance.now() + lockPatienceMs;
  for (;;) {
    try {
      return await tryInSnapshot(client, work, settings);
    } catch (error) {
      if (!isLockTimeout(error) || performance.now() > deadline) throw error;
      await sleep(LOCK_RETRY_MS);
    }
  }
}

async function tryInSnapshot<Result>(
  client: pg.ClientBase,
  work: () => Promise<Result>,
  settings: readonly string[],
): Promise<Result> {
  await queryWithTimeout(client, "begin isolation level repeatable read, read only");
  try {
    for (const text of [SNAPSHOT_SETTINGS, ...settings, `savepoint ${SAVEPOINT}`]) await queryWithTimeout(client, text);
    const result = await work();
    await queryWithTimeout(client, "commit");
    return result;
  } catch (error) {
    await queryWithTimeout(client, "rollback", [], 5_000).catch(() => {});
    throw error;
  }
}
