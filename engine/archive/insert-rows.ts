import pg from "pg";
import type { ContentTable } from "./content-tables.ts";

/** Inserts rows given as composite literals. `offset 0` makes Postgres parse each literal once, not once per column. */
export async function insertRows(
  client: pg.ClientBase,
  { table, columns, generated }: ContentTable,
  rows: readonly string[],
): Promise<void> {
  const written = columns.filter((column) => !generated.includes(column)).map((column) => pg.escapeIdentifier(column));
  await client.query(
    `insert into ${table} (${written}) overriding system value
     select ${written.map((column) => `(r).${column}`)}
       from (select line::${table} as r from unnest($1::text[]) as line offset 0) as rows`,
    [rows],
  );
}
