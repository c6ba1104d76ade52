import type pg from "pg";
import { quotedName } from "#postgres/client";
import type { ArchiveTable } from "./archive-format.ts";

/** True if `pg_class c` belongs to an extension. */
export const IS_MEMBER =
  "exists (select from pg_depend where classid = 'pg_class'::regclass and objid = c.oid and deptype = 'e')";
/** True if the relation `pg_class c` in `pg_namespace n` is in backups. */
const IS_ARCHIVED = `nspname !~ '^pg_' and nspname <> 'information_schema' and relpersistence <> 't' and not ${IS_MEMBER}`;

/** Extensions list their tables that contain rows of users. */
const EXTENSION_ROWS = `
  select setting.condition
    from pg_extension, unnest(extconfig, extcondition) as setting (relation, condition) where setting.relation = c.oid`;

/** True if the rows of `pg_class c` in `pg_namespace n` are in backups and branches. */
export const HAS_COPIED_ROWS = `(${IS_ARCHIVED} or exists (${EXTENSION_ROWS}))`;

/** Returns SQL for the name of a table in the format of `quotedName`. */
export const quotedNameSql = (schema: string, name: string) =>
  `format('"%s"."%s"', replace(${schema}, '"', '""'), replace(${name}, '"', '""'))`;

const TABLES = `
  select nspname as schema, relname as name, array(
      select attname::text from pg_attribute
       where attrelid = c.oid and attnum > 0 and not attisdropped order by attnum) as columns, array(
      select attname::text from pg_attribute
       where attrelid = c.oid and attnum > 0 and not attisdropped and attgenerated <> '' order by attnum) as generated,
      coalesce((${EXTENSION_ROWS}), '') as condition, ${IS_MEMBER} as "isOfExtension", array(
      select ${quotedNameSql("other_schema.nspname", "other.relname")}
        from pg_constraint join pg_class other on other.oid = confrelid join pg_namespace other_schema on other_schema.oid = other.relnamespace
       where conrelid = c.oid and contype = 'f' order by 1) as references
    from pg_class c join pg_namespace n on n.oid = relnamespace
   where relkind = 'r'`;
const ORDER = 'order by nspname collate "C", relname collate "C"';

export type ContentTable = ArchiveTable & {
  /** The generated columns. */
  readonly generated: readonly string[];
  /** The condition that selects the rows of users in an extension's table. */
  readonly condition: string;
  /** An expression of the row `t` with replaced values. */
  readonly values?: string;
  readonly isOfExtension: boolean;
  /** The tables that its foreign keys refer to. */
  readonly references: readonly string[];
};

/**
 * Returns all tables with rows; views and partitioned parents have none. Extensions create their tables with foreign keys,
 * so these are sorted by reference.
 */
export async function allTables(client: pg.ClientBase): Promise<ContentTable[]> {
  const tables = await queryTables(client, `${TABLES} and ${HAS_COPIED_ROWS} ${ORDER}`);
  const [members, others] = [tables.filter(isOfExtension), tables.filter((table) => !isOfExtension(table))];
  const referenced = ({ references }: ContentTable) => members.filter(({ table }) => references.includes(table));
  return [...sortByReferences(members, referenced), ...others];
}

/** Sorts tables so that referenced tables come first. Tables that refer to each other keep their order. */
export function sortByReferences<T>(tables: readonly T[], referencedBy: (table: T) => readonly T[]): T[] {
  const sorted = new Set<T>();
  const visit = (table: T, path: readonly T[]) => {
    if (sorted.has(table) || path.includes(table)) return;
    for (const other of referencedBy(table)) visit(other, [...path, table]);
    sorted.add(table);
  };
  for (const table of tables) visit(table, []);
  return [...sorted];
}

const isOfExtension = (table: ContentTable) => table.isOfExtension;

async function queryTables(client: pg.ClientBase, query: string): Promise<ContentTable[]> {
  const { rows } = await client.query<Omit<ContentTable, "table"> & { schema: string; name: string }>(query);
  return rows.map(({ schema, name, ...table }) => ({ table: quotedName(schema, name), ...table }));
}

export async function sequenceNames(client: pg.ClientBase): Promise<string[]> {
  const { rows } = await client.query<{ schema: string; name: string }>(
    `select nspname as schema, relname as name from pg_class c join pg_namespace n on n.oid = relnamespace
      where relkind = 'S' and ${HAS_COPIED_ROWS} ${ORDER}`,
  );
  return rows.map(({ schema, name }) => quotedName(schema, name));
}

/** Makes the text format of values independent of the database's settings. */
export async function setPortableFormats(client: pg.ClientBase): Promise<void> {
  await client.query(`
    set datestyle = 'ISO'; set intervalstyle = 'postgres'; set timezone = 'UTC'; set extra_float_digits = 1;
    set bytea_output = 'hex'; set search_path = ''; set statement_timeout = 0; set row_security = off;
    set idle_in_transaction_session_timeout = 0; set synchronize_seqscans = off; set check_function_bodies = off;
    set default_table_access_method = heap; set default_tablespace = ''; set xmloption = content`);
}
