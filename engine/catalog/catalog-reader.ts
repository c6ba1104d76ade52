import { createHash } from "node:crypto";
import type pg from "pg";
import { forEachInSlices } from "../concurrency/event-loop-sharing.ts";

/** Above the statement_timeout of the snapshot, so that it only applies to dead connections. */
const QUERY_TIMEOUT_MS = 90_000;

/** An empty search path makes Postgres print qualified names. The lock timeout makes a load fail while a long migration holds its tables. */
const SNAPSHOT_SETTINGS = `
  select set_config('search_path', '', true), set_config('jit', 'off', true),
    set_config('lock_timeout', '10s', true), set_config('statement_timeout', '60s', true)`;

/** Runs one introspection query. All rows that it returns are part of the content hash. */
export type CatalogQuery = <Row extends object>(
  subject: string,
  text: string,
  values?: readonly unknown[],
) => Promise<Row[]>;

type CatalogReader = {
  readonly read: CatalogQuery;
  /** Milliseconds per subject, including the transfer. */
  readonly timings: Readonly<Record<string, number>>;
  /** The hash of all rows that were read so far. */
  contentHash(): string;
};

const ROWS_PER_HASH_UPDATE = 100;

/** The options are part of the hash, since the same rows make a different catalogue with other options. */
export function makeCatalogReader(client: pg.ClientBase, options: object): CatalogReader {
  const hash = createHash("sha1").update(JSON.stringify(options));
  const timings: Record<string, number> = {};

  const read: CatalogQuery = async <Row extends object>(
    subject: string,
    text: string,
    values: readonly unknown[] = [],
  ) => {
    const startedAt = performance.now();
    const rows = await queryWithTimeout<Row>(client, text, values);
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

/** Runs the work in a repeatable-read transaction. */
export async function inSnapshot<Result>(client: pg.ClientBase, work: () => Promise<Result>): Promise<Result> {
  await queryWithTimeout(client, "begin isolation level repeatable read, read only");
  try {
    await queryWithTimeout(client, SNAPSHOT_SETTINGS);
    const result = await work();
    await queryWithTimeout(client, "commit");
    return result;
  } catch (error) {
    await queryWithTimeout(client, "rollback", [], 5_000).catch(() => {});
    throw error;
  }
}
