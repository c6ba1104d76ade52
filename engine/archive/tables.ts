import type pg from "pg";
import { quotedName } from "../quoted-name.ts";
import type { Table } from "./format.ts";

/** What belongs to the content: schemas of the migrations' own book-keeping and of the queue are made by who needs them. */
const CONTENT = `
  nspname !~ '^pg_' and nspname not in ('information_schema', 'graphile_migrate', 'graphile_worker')
  and not exists (select from pg_depend where classid = 'pg_class'::regclass and objid = c.oid and deptype = 'e')`;

const TABLES = `
  select nspname as schema, relname as name, array(
      select attname::text from pg_attribute
       where attrelid = c.oid and attnum > 0 and not attisdropped order by attnum) as columns, array(
      select attname::text from pg_attribute
       where attrelid = c.oid and attnum > 0 and not attisdropped and attgenerated <> '' order by attnum) as generated
    from pg_class c join pg_namespace n on n.oid = relnamespace
   where relkind = 'r' and ${CONTENT}
   order by 1, 2`;

export type ContentTable = Table & {
  /** Those that Postgres works out. */
  readonly generated: readonly string[];
};

/** Each table that holds rows of its own. */
export async function contentTables(client: pg.ClientBase): Promise<ContentTable[]> {
  const { rows } = await client.query<{ schema: string; name: string; columns: string[]; generated: string[] }>(TABLES);
  return rows.map(({ schema, name, columns, generated }) => ({ table: quotedName(schema, name), columns, generated }));
}

/** Names of relations of another kind: sequences, views that hold rows. */
export async function contentRelations(client: pg.ClientBase, kind: "S" | "m"): Promise<string[]> {
  const { rows } = await client.query<{ schema: string; name: string }>(
    `select nspname as schema, relname as name from pg_class c join pg_namespace n on n.oid = relnamespace
      where relkind = $1 and ${CONTENT} order by 1, 2`,
    [kind],
  );
  return rows.map(({ schema, name }) => quotedName(schema, name));
}

/** Values are written and read in the same words, whatever the database's settings are. */
export async function speakPlainly(client: pg.ClientBase): Promise<void> {
  await client.query(`
    set datestyle = 'ISO'; set intervalstyle = 'postgres'; set timezone = 'UTC'; set extra_float_digits = 1;
    set bytea_output = 'hex'; set search_path = ''; set statement_timeout = 0; set row_security = off;
    set idle_in_transaction_session_timeout = 0`);
}
