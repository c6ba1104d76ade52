import type pg from "pg";
import { quotedName, withClient } from "#postgres/client";
import { setPortableFormats, sortByReferences } from "../content-tables.ts";

const TABLES = `
  select nspname as schema, relname as name from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace
   where relkind in ('r', 'p') and not relispartition and relpersistence = 'p' and nspname = any ($1)
     and not exists (select from pg_catalog.pg_depend where classid = 'pg_catalog.pg_class'::pg_catalog.regclass and objid = c.oid and deptype = 'e')
   order by nspname collate "C", relname collate "C"`;

export type ComparedTables = {
  readonly tables: readonly string[];
  /** Those that are not here any more. */
  readonly dropped: readonly string[];
};

/** The tables that the schemas had at the earlier time. Unlogged ones are empty in a restored cluster. */
export async function listComparedTables(
  url: string,
  earlierUrl: string,
  schemas: readonly string[],
): Promise<ComparedTables> {
  const list = async (each: string) => withClient(each, (client) => listTables(client, schemas));
  const [here, before] = await Promise.all([list(url), list(earlierUrl)]);
  return {
    tables: before.filter((table) => here.includes(table)),
    dropped: before.filter((table) => !here.includes(table)),
  };
}

async function listTables(client: pg.ClientBase, schemas: readonly string[]): Promise<string[]> {
  await setPortableFormats(client);
  const { rows } = await client.query<{ schema: string; name: string }>(TABLES, [schemas]);
  return rows.map(({ schema, name }) => quotedName(schema, name));
}

const REFERENCES = `
  with compared as (
    select name, tree.relid from pg_catalog.unnest($1::pg_catalog.text[]) as name, pg_catalog.to_regclass(name) as class,
      lateral (select relid from pg_catalog.pg_partition_tree(class) union select class) as tree
  )
  select distinct referring.name as "from", referred.name as "to"
    from pg_catalog.pg_constraint join compared as referring on referring.relid = conrelid join compared as referred on referred.relid = confrelid
   where contype = 'f' and referring.name <> referred.name`;

/** Those that others refer to first. */
export async function sortTables(client: pg.ClientBase, tables: readonly string[]): Promise<string[]> {
  const { rows } = await client.query<{ from: string; to: string }>(REFERENCES, [tables]);
  return sortByReferences(tables, (table) => rows.filter(({ from }) => from === table).map(({ to }) => to));
}
