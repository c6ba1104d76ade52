import type pg from "pg";

/** Above the server's own limit (see snapshot.ts): it matters only when the connection is dead and nobody says so. */
const ANSWER_WITHIN_MS = 90_000;

/** One statement that does not wait forever. */
export async function ask<Row extends object>(
  client: pg.ClientBase,
  text: string,
  values: readonly unknown[] = [],
  withinMs: number = ANSWER_WITHIN_MS,
): Promise<Row[]> {
  const query = { text, values: [...values], query_timeout: withinMs };
  const { rows } = await client.query<Row & pg.QueryResultRow>(query);
  return rows;
}
