import type { ConstraintRow, Namer } from "./constraints.ts";
import type { Read } from "./reader.ts";

export type Index = {
  readonly name: string;
  readonly method: string;
  readonly unique: boolean;
  /** The key columns in order; null stands for an expression. */
  readonly columns: readonly (string | null)[];
  /** What an index with expressions depends on; empty for others, and where a predicate has columns of its own. */
  readonly mentioned: readonly string[];
  /** Of a partial index. */
  readonly predicate: string | null;
  readonly comment: string | null;
};

/** What `on conflict` can name and one row can be found by: the primary key, unique constraints and unique indexes on columns. */
export type UniqueKey = {
  readonly name: string;
  readonly kind: "primary key" | "constraint" | "index";
  readonly columns: readonly string[];
  readonly predicate: string | null;
  readonly nullsDistinct: boolean;
  readonly deferrable: boolean;
  readonly comment: string | null;
};

export type IndexRow = {
  oid: number;
  table: number;
  name: string;
  method: string;
  unique: boolean;
  deferrable: boolean;
  nullsDistinct: boolean;
  /** `1 4 0`: column numbers, 0 for an expression, those of `include` left out. */
  positions: string;
  /** `3`, the columns that it depends on, as far as they are told. */
  mentioned: string;
  predicate: string | null;
  comment: string | null;
};

const indexes = (serverVersion: number) => `
  select i.indexrelid as oid, i.indrelid as table, x.relname as name, m.amname as method, i.indisunique as unique,
    not i.indimmediate as deferrable,
    ${serverVersion >= 150000 ? "not i.indnullsnotdistinct" : "true"} as "nullsDistinct",
    array_to_string((i.indkey::int2[])[0:i.indnkeyatts - 1], ' ') as positions,
    case when i.indexprs is null or i.indpred is not null then '' else array_to_string(array(
      select distinct r.refobjsubid from pg_depend r
      where r.classid = 'pg_class'::regclass and r.objid = i.indexrelid
        and r.refclassid = 'pg_class'::regclass and r.refobjid = i.indrelid and r.refobjsubid > 0
    ), ' ') end as mentioned,
    pg_get_expr(i.indpred, i.indrelid) as predicate, d.description as comment
  from pg_index i join pg_class c on c.oid = i.indrelid join pg_class x on x.oid = i.indexrelid
    join pg_am m on m.oid = x.relam
    left join pg_description d on d.classoid = 'pg_class'::regclass and d.objoid = i.indexrelid and d.objsubid = 0
  where c.relnamespace = any ($1) and i.indisvalid
  order by i.indrelid, not i.indisprimary, x.relname`;

export function readIndexes(read: Read, schemas: readonly number[], serverVersion: number): Promise<IndexRow[]> {
  return read("indexes", indexes(serverVersion), [schemas]);
}

export function toIndex(row: IndexRow, namesOf: Namer): Index {
  const { name, method, unique, predicate, comment } = row;
  const columns = positionsOf(row).map((position) => namesOf(row.table, [position])[0] ?? null);
  const mentioned = namesOf(row.table, numbersIn(row.mentioned));
  return { name, method, unique, columns, mentioned, predicate, comment };
}

/** Null for an index that is not unique or has an expression. */
export function toUniqueKey(row: IndexRow, constraint: ConstraintRow | undefined, namesOf: Namer): UniqueKey | null {
  const positions = positionsOf(row);
  if (!row.unique || positions.includes(0)) return null;
  return {
    name: constraint?.name ?? row.name,
    kind: constraint ? (constraint.contype === "p" ? "primary key" : "constraint") : "index",
    columns: namesOf(row.table, positions),
    predicate: row.predicate,
    nullsDistinct: row.nullsDistinct,
    deferrable: row.deferrable,
    comment: constraint?.comment ?? row.comment,
  };
}

function positionsOf({ positions }: IndexRow): number[] {
  return numbersIn(positions);
}

function numbersIn(text: string): number[] {
  return text === "" ? [] : text.split(" ").map(Number);
}
