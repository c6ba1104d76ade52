import type pg from "pg";
import { quotedName } from "../pg-client/quoted-name.ts";
import type { ArchiveTable } from "./archive-format.ts";

/** Excludes extensions and the schemas that graphile-migrate and graphile-worker create themselves. */
const IS_CONTENT = `
  nspname !~ '^pg_' and nspname not in ('information_schema', 'graphile_migrate', 'graphile_worker')
  and not exists (select from pg_depend where classid = 'pg_class'::regclass and objid = c.oid and deptype = 'e')`;

const CONTENT_TABLES = `
  select nspname as schema, relname as name, array(
      select attname::text from pg_attribute
       where attrelid = c.oid and attnum > 0 and not attisdropped order by attnum) as columns, array(
      select attname::text from pg_attribute
       where attrelid = c.oid and attnum > 0 and not attisdropped and attgenerated <> '' order by attnum) as generated
    from pg_class c join pg_namespace n on n.oid = relnamespace
   where relkind = 'r' and ${IS_CONTENT}
   order by 1, 2`;

export type ContentTable = ArchiveTable & {
  /** Generated columns. */
  readonly generated: readonly string[];
};

/** All tables with rows; views and partitioned parents have none. */
export async function contentTables(client: pg.ClientBase): Promise<ContentTable[]> {
  const { rows } = await client.query<{ schema: string; name: string; columns: string[]; generated: string[] }>(
    CONTENT_TABLES,
  );
  return rows.map(({ schema, name, columns, generated }) => ({ table: quotedName(schema, name), columns, generated }));
}

/** Names of sequences (S) or materialized views (m). */
export async function contentRelations(client: pg.ClientBase, kind: "S" | "m"): Promise<string[]> {
  const { rows } = await client.query<{ schema: string; name: string }>(
    `select nspname as schema, relname as name from pg_class c join pg_namespace n on n.oid = relnamespace
      where relkind = $1 and ${IS_CONTENT} order by 1, 2`,
    [kind],
  );
  return rows.map(({ schema, name }) => quotedName(schema, name));
}

/** Makes the text format of values independent of the database's settings. */
export async function setPortableFormats(client: pg.ClientBase): Promise<void> {
  await client.query(`
    set datestyle = 'ISO'; set intervalstyle = 'postgres'; set timezone = 'UTC'; set extra_float_digits = 1;
    set bytea_output = 'hex'; set search_path = ''; set statement_timeout = 0; set row_security = off;
    set idle_in_transaction_session_timeout = 0`);
}
