import type pg from "pg";

/** The rows of a table, or the position of a sequence, as one text. */
export type StoredValues = { readonly name: string; readonly values: string };

/** Those that the session can read as a whole. */
const READABLE = `
  select class.oid::pg_catalog.int8::pg_catalog.float8 as oid, relkind = 'S' as "isSequence",
    pg_catalog.format('%I.%I', nspname, relname) as name
  from pg_catalog.pg_class as class join pg_catalog.pg_namespace as namespace on namespace.oid = relnamespace
  where class.oid >= 16384 and relkind in ('r', 'S') and relpersistence <> 't' and nspname !~ '^pg_'
    and pg_catalog.has_schema_privilege(namespace.oid, 'usage') and pg_catalog.has_table_privilege(class.oid, 'select')
    and not pg_catalog.row_security_active(class.oid)
  order by class.oid`;

/** By the number of the relation. Reads all rows, in the open transaction. */
export async function readStoredValues(client: pg.ClientBase): Promise<Map<number, StoredValues>> {
  await client.query("savepoint reading");
  await client.query("set local search_path = ''");
  const { rows } = await client.query<{ oid: number; isSequence: boolean; name: string }>(READABLE);
  const stored = new Map<number, StoredValues>();
  for (const { oid, isSequence, name } of rows) {
    const values = isSequence
      ? `select last_value || ' ' || is_called as values from ${name}`
      : `select count(*) || ' ' || coalesce(sum(hashtextextended((stored_row.*)::text, 0)), 0) as values from only ${name} as stored_row`;
    const found = await client.query<{ values: string }>(values);
    stored.set(oid, { name, values: found.rows[0]!.values });
  }
  await client.query("rollback to savepoint reading");
  return stored;
}
