import pg from "pg";
import { quotedName } from "#postgres/client";

type TargetColumn = {
  readonly name: string;
  readonly isGenerated: boolean;
  /** True for GENERATED ALWAYS AS IDENTITY, which an update cannot set. */
  readonly isAlwaysIdentity: boolean;
};

type KeyColumn = {
  readonly name: string;
  /** The equality operator of the index, such as `operator(public.=)`. */
  readonly equals: string;
};

export type TargetTable = {
  /** The quoted name, with its schema. */
  readonly table: string;
  /** The FROM item: without the tables that inherit, but with partitions. */
  readonly relation: string;
  readonly columns: readonly TargetColumn[];
  /** The primary key, or another unique key without nulls; null if there is none. */
  readonly key: { readonly index: string; readonly columns: readonly KeyColumn[] } | null;
};

const FIND = `
  select c.oid, n.nspname as schema, c.relname as name, c.relkind as kind
    from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace
   where c.oid = pg_catalog.to_regclass($1)`;

const COLUMNS = `
  select attname as name, attgenerated <> '' as "isGenerated", attidentity = 'a' as "isAlwaysIdentity"
    from pg_catalog.pg_attribute where attrelid = $1 and attnum > 0 and not attisdropped order by attnum`;

const KEY = `
  select i.relname as index, array(
      select pg_catalog.json_build_object('name', a.attname, 'equals', pg_catalog.format('operator(%I.%s)', o.nspname, oprname))
        from unnest(indkey::int2[], indclass::oid[]) with ordinality as k (attnum, opclass, position)
        join pg_catalog.pg_attribute a on a.attrelid = indrelid and a.attnum = k.attnum
        join pg_catalog.pg_opclass opc on opc.oid = k.opclass
        join pg_catalog.pg_amop on amopfamily = opcfamily and amopstrategy = 3 and amoplefttype = opcintype and amoprighttype = opcintype
        join pg_catalog.pg_operator on pg_operator.oid = amopopr
        join pg_catalog.pg_namespace o on o.oid = oprnamespace
       where position <= indnkeyatts order by position) as columns
    from pg_catalog.pg_index join pg_catalog.pg_class i on i.oid = indexrelid join pg_catalog.pg_am on pg_am.oid = i.relam
   where indrelid = $1 and indisunique and indisvalid and indimmediate and indpred is null and indexprs is null and amname = 'btree'
     and not exists (
       select from unnest(indkey::int2[]) with ordinality as k (attnum, position)
         join pg_catalog.pg_attribute a on a.attrelid = indrelid and a.attnum = k.attnum
        where position <= indnkeyatts and not a.attnotnull)
   order by indisprimary desc, indnkeyatts, i.relname limit 1`;

/** Returns the table in its current form. Throws if there is none. */
export async function findTarget(client: pg.ClientBase, name: string): Promise<TargetTable> {
  const target = await readTarget(client, name.includes(".") ? name : `public.${name}`);
  if (!target) throw new Error(`There is no table ${name} here. Rows are restored into an existing table.`);
  return target;
}

/** Returns null if there is no such table. */
export async function readTarget(client: pg.ClientBase, name: string): Promise<TargetTable | null> {
  const { rows } = await client.query<{ oid: number; schema: string; name: string; kind: string }>(FIND, [name]);
  const [found] = rows;
  if (!found) return null;
  if (!["r", "p"].includes(found.kind)) throw new Error(`${name} is not a table.`);
  const table = quotedName(found.schema, found.name);
  const { rows: columns } = await client.query<TargetColumn>(COLUMNS, [found.oid]);
  const { rows: keys } = await client.query<NonNullable<TargetTable["key"]>>(KEY, [found.oid]);
  return { table, relation: found.kind === "p" ? table : `only ${table}`, columns, key: keys[0] ?? null };
}

/** Returns the key, if the backup has its columns. */
export function usableKey({ key }: TargetTable, columns: readonly string[]): TargetTable["key"] {
  return key?.columns.every(({ name }) => columns.includes(name)) ? key : null;
}

export function quoteColumn(name: string): string {
  return pg.escapeIdentifier(name);
}
