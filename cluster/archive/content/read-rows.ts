import type pg from "pg";
import type { ContentTable } from "./content-tables.ts";

const MOST_ROWS = 200;
/** The size of what is fetched at once, unless one row is larger: the texts are held in memory together. */
const FETCH_CHARACTERS = 4_000_000;

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
  for (let count = 1; ; ) {
    const { rows } = await client.query<{ row: string }>(`fetch ${count} from archived`);
    for (const { row } of rows) yield row;
    if (rows.length < count) break;
    const characters = rows.reduce((sum, { row }) => sum + row.length, 1);
    const fitting = Math.floor((FETCH_CHARACTERS * count) / characters);
    // The next rows may be larger than these, so the count grows in steps.
    count = Math.max(1, Math.min(fitting, 2 * count, MOST_ROWS));
  }
  await client.query("close archived");
}
