import type { QualifiedName } from "./qualified-name.ts";
import type { Read } from "./reader.ts";

/** A table outside the schemas that are read, known only because a view shows it or a foreign key points to it. */
export type HiddenTable = QualifiedName & { readonly columns: ReadonlyMap<number, HiddenColumn> };
export type HiddenColumn = { readonly name: string; readonly nullable: boolean };

type HiddenRow = { table: number; schema: string; tableName: string; position: number; name: string; notNull: boolean };

const HIDDEN = `
  select c.oid as table, n.nspname as schema, c.relname as "tableName",
    a.attnum as position, a.attname as name, a.attnotnull or t.typnotnull as "notNull"
  from pg_class c join pg_namespace n on n.oid = c.relnamespace
    join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
    join pg_type t on t.oid = a.atttypid
  where c.oid = any ($1)
  order by c.oid, a.attnum`;

export async function readHiddenTables(read: Read, oids: readonly number[]): Promise<ReadonlyMap<number, HiddenTable>> {
  if (oids.length === 0) return new Map();
  const rows = await read<HiddenRow>("hiddenTables", HIDDEN, [oids]);
  const tables = new Map<number, HiddenTable>();
  for (const [oid, columns] of Map.groupBy(rows, ({ table }) => table)) {
    tables.set(oid, {
      schema: columns[0]!.schema,
      name: columns[0]!.tableName,
      columns: new Map(columns.map(({ position, name, notNull }) => [position, { name, nullable: !notNull }])),
    });
  }
  return tables;
}
