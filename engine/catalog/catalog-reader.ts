import { createHash } from "node:crypto";
import type pg from "pg";
import { forEachInSlices } from "../concurrency/event-loop-sharing.ts";

/** Above the server's own limit (see snapshot.ts): it matters only when the connection is dead and nobody says so. */
const QUERY_TIMEOUT_MS = 90_000;

/** Names come out qualified because nothing is on the search path. A migration that holds its tables for long makes an attempt fail. */
const SNAPSHOT_SETTINGS = `
  select set_config('search_path', '', true), set_config('jit', 'off', true),
    set_config('lock_timeout', '10s', true), set_config('statement_timeout', '60s', true)`;

/** Runs one query of the introspection. Whatever it returns is content: a difference in it is a new catalogue. */
export type CatalogQuery = <Row extends object>(
  subject: string,
  text: string,
  values?: readonly unknown[],
) => Promise<Row[]>;

type CatalogReader = {
  readonly read: CatalogQuery;
  /** Milliseconds that each subject took, its transfer included. */
  readonly timings: Readonly<Record<string, number>>;
  /** Of all that was read so far. */
  contentHash(): string;
};

const ROWS_PER_HASH_UPDATE = 100;

/** The same rows make another catalogue when other things are wanted of them. */
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

/** One statement that does not wait forever. */
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

/** Whatever is read inside agrees with itself. */
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
