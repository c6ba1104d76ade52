import type pg from "pg";
import { quotedName, withClient } from "#postgres/client";
import { setPortableFormats, sortByReferences } from "../content/content-tables.ts";

const TABLES = `
  select nspname as schema, relname as name from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace
   where relkind in ('r', 'p') and not relispartition and relpersistence = 'p' and nspname = any ($1)
     and not exists (select from pg_catalog.pg_depend where classid = 'pg_catalog.pg_class'::pg_catalog.regclass and objid = c.oid and deptype = 'e')
   order by nspname collate "C", relname collate "C"`;

type ComparedTables = {
  readonly tables: readonly string[];
  /** The tables that no longer exist. */
  readonly dropped: readonly string[];
};

/** Lists the tables that the schemas had at the earlier time. Unlogged tables are empty in a restored cluster. */
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
  select distinct referring.name as "from", referred.name as "to", array(
      select attname::pg_catalog.text from pg_catalog.pg_attribute
       where attrelid = conrelid and attnum = any (conkey) and not attnotnull) as nullable
    from pg_catalog.pg_constraint join compared as referring on referring.relid = conrelid join compared as referred on referred.relid = confrelid
   where contype = 'f' and referring.name <> referred.name`;

export type OrderedTable = {
  readonly table: string;
  /** The columns that refer to rows which are restored later, because these tables refer to each other. */
  readonly postponed: readonly string[];
};

type TableReference = { readonly from: string; readonly to: string; readonly nullable: readonly string[] };

/** Sorts referenced tables first. Of tables that refer to each other, those whose references can be null come first. */
export async function sortTables(client: pg.ClientBase, tables: readonly string[]): Promise<OrderedTable[]> {
  const { rows } = await client.query<TableReference>(REFERENCES, [tables]);
  const references = Map.groupBy(rows, ({ from }) => from);
  const reaches = (from: string, to: string, seen: Set<string>): boolean => {
    if (from === to) return true;
    if (seen.has(from)) return false;
    seen.add(from);
    return references.get(from)?.some((reference) => reaches(reference.to, to, seen)) ?? false;
  };
  const isFirst = ({ from, to, nullable }: TableReference) => nullable.length === 0 || !reaches(to, from, new Set());
  const firm = Map.groupBy(rows.filter(isFirst), ({ from }) => from);
  const sorted = sortByReferences(tables, (table) => firm.get(table)?.map(({ to }) => to) ?? []);
  return sorted.map((table, index) => {
    const later = rows.filter(({ from, to }) => from === table && sorted.indexOf(to) > index);
    return { table, postponed: [...new Set(later.flatMap(({ nullable }) => nullable))] };
  });
}
