import type { Read } from "./reader.ts";

type JunctionRow = { table: number };

/** Two foreign keys within the primary key of a table make it a junction. */
const HIDDEN_JUNCTIONS = `
  select distinct one.confrelid::int8 as table
  from pg_constraint one
    join pg_constraint other on other.conrelid = one.conrelid and other.contype = 'f' and other.oid <> one.oid
    join pg_constraint key on key.conrelid = one.conrelid and key.contype = 'p'
    join pg_class junction on junction.oid = one.conrelid
    join pg_class source on source.oid = one.confrelid
    join pg_class target on target.oid = other.confrelid
  where one.contype = 'f' and one.conkey <@ key.conkey and other.conkey <@ key.conkey
    and junction.relnamespace <> all ($1) and source.relnamespace = any ($1) and target.relnamespace = any ($1)
  order by 1`;

/** The tables that are related to others through junctions in schemas that are not served. */
export async function readHiddenJunctions(read: Read, exposedSchemas: readonly number[]): Promise<number[]> {
  const rows = await read<JunctionRow>("hidden junctions", HIDDEN_JUNCTIONS, [exposedSchemas]);
  return rows.map(({ table }) => Number(table));
}
