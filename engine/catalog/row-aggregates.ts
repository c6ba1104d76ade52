import type { Read } from "./reader.ts";

type AggregateRow = { name: string };

/** In SQL `row.count` is `count(row)`, where the row has no such column. */
const ROW_AGGREGATES = `
  select distinct p.proname as name
  from pg_aggregate a join pg_proc p on p.oid = a.aggfnoid join pg_type t on t.oid = p.proargtypes[0]
  where a.aggkind = 'n' and p.pronargs = 1 and (t.typtype = 'c' or t.typname in
    ('any', 'anyelement', 'anynonarray', 'anycompatible', 'anycompatiblenonarray', 'record'))
  order by p.proname`;

/** The names of the aggregates that take a whole row. */
export async function readRowAggregates(read: Read): Promise<string[]> {
  const rows = await read<AggregateRow>("row aggregates", ROW_AGGREGATES);
  return rows.map(({ name }) => name);
}
