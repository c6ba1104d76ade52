import type pg from "pg";
import { expect } from "vitest";
import { dumpSchema } from "../../migrate/dump-schema.ts";
import { setUsersAccess } from "../../migrate/migrate.ts";
import { withClient } from "../../postgres/client/with-client.ts";
import { cloneDatabase } from "../database.ts";
import { PROJECT } from "./earlier-databases.ts";
import type { OwnHistories } from "./own-histories.ts";

/** The rows of all tables but the record of migrations, each as text of its columns at the time. */
export async function rowsOfAllTables(
  own: OwnHistories,
  columns?: ReadonlyMap<string, string>,
): Promise<Map<string, unknown[]>> {
  const tables = await own.rows(`
    select oid::regclass::text as name, (
      select string_agg(quote_ident(attname), ', ' order by attnum) from pg_attribute
      where attrelid = pg_class.oid and attnum > 0 and not attisdropped
    ) as columns
    from pg_class where relkind = 'r'
      and relnamespace::regnamespace::text in ('public', 'auth', 'api', 'storage', 'private', 'content_service')`);
  const rows = new Map<string, unknown[]>();
  for (const { name, columns: present } of tables as { name: string; columns: string }[]) {
    if (columns && !columns.has(name)) continue;
    const list = columns?.get(name) ?? present;
    rows.set(`${name} (${list})`, await own.rows(`select ${list} from ${name} as named order by named::text`));
  }
  return rows;
}

/** The name that an earlier version's table has now: the schema of the service was called `private`, and what the project had there stays. */
export function presentName(table: string): string {
  return table.replace(/^private\.(?!own_)/, "content_service.");
}

/** Compares the database with one that the present migrations made, but for the queue's own tables. */
export async function requireSchemaOfNewDatabase(own: OwnHistories): Promise<void> {
  const database = await cloneDatabase();
  try {
    const made = await withClient(database.ownerUrl, async (client) => {
      await client.query(PROJECT);
      await setUsersAccess(client, "owner");
      const { rows } = await client.query(BOUNDS);
      return { bounds: rows, schema: await schemaOf(client) };
    });
    await withClient(own.settings.url, (client) => setUsersAccess(client, "owner"));
    // The queue's own, of whatever version.
    await own.rows("drop schema graphile_worker cascade");
    expect(await own.rows(BOUNDS)).toEqual(made.bounds);
    expect(await withClient(own.settings.url, schemaOf)).toBe(made.schema);
  } finally {
    await database.drop();
  }
}

/** pg_dump has written names of columns in standard bodies that nobody had written before. */
async function schemaOf(client: pg.ClientBase): Promise<string> {
  return (await dumpSchema(client)).replaceAll(/(::\w+) AS (?:text|int8)\b/g, "$1");
}

const BOUNDS = `select name, bound from content_service.bounds union all select name, null from content_service.task_lanes order by name`;
