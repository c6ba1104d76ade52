import type pg from "pg";
import type { ContentTable } from "./content-tables.ts";

const FETCH_ROWS = 200;

/** Streams the rows of a table, without those of its children, in Postgres's text format of a composite value. */
export async function* tableRows(
  client: pg.ClientBase,
  { table, condition, values = "t.*" }: Pick<ContentTable, "table" | "condition" | "values">,
): AsyncGenerator<string> {
  // `t` alone is a column if the table has one of this name; `t.*` is always the row.
  yield* readByCursor(client, `select (${values})::text as row from only ${table} as t ${condition}`);
}

/** Streams the texts that the query selects as `row`, a few at a time, in the open transaction. */
export async function* readByCursor(client: pg.ClientBase, query: string): AsyncGenerator<string> {
  await client.query(`declare archived no scroll cursor for ${query}`);
  for (;;) {
    const { rows } = await client.query<{ row: string }>(`fetch ${FETCH_ROWS} from archived`);
    for (const { row } of rows) yield row;
    if (rows.length < FETCH_ROWS) break;
  }
  await client.query("close archived");
}
