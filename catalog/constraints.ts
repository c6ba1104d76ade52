import type { CatalogQuery } from "./catalog-query.ts";
import type { QualifiedName } from "./data-types.ts";
import { isLocked } from "./locked-relations.ts";

/** A junction table has two foreign keys within its primary key. */
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

const indexesSql = (serverVersion: number) => `
  select i.indexrelid as oid, i.indrelid as table, x.relname as name, m.amname as method, i.indisunique as unique,
    not i.indimmediate as deferrable,
    ${serverVersion >= 150000 ? "not i.indnullsnotdistinct" : "true"} as "nullsDistinct",
    array_to_string((i.indkey::int2[])[0:i.indnkeyatts - 1], ' ') as positions,
    case when i.indexprs is null or i.indpred is not null then '' else array_to_string(array(
      select distinct r.refobjsubid from pg_depend r
      where r.classid = 'pg_class'::regclass and r.objid = i.indexrelid
        and r.refclassid = 'pg_class'::regclass and r.refobjid = i.indrelid and r.refobjsubid > 0
    ), ' ') end as mentioned,
    case when not ${isLocked("c.oid")} then pg_get_expr(i.indpred, i.indrelid) end as predicate,
    i.indpred is not null and ${isLocked("c.oid")} as locked, d.description as comment
  from pg_index i join pg_class c on c.oid = i.indrelid join pg_class x on x.oid = i.indexrelid
    join pg_am m on m.oid = x.relam
    left join pg_description d on d.classoid = 'pg_class'::regclass and d.objoid = i.indexrelid and d.objsubid = 0
  where c.relnamespace = any ($1) and i.indisvalid
  order by i.indrelid, not i.indisprimary, x.relname`;

export type TableCheck = {
  readonly name: string;
  readonly kind: "check" | "exclude";
  readonly columns: readonly string[];
  /** The condition of a check constraint; null for an exclusion constraint. */
  readonly expression: string | null;
  readonly comment: string | null;
};

export type ForeignKey = {
  readonly name: string;
  readonly columns: readonly string[];
  /** The referenced table, which may be in a schema that is not exposed. */
  readonly target: QualifiedName;
  readonly targetColumns: readonly string[];
  readonly onUpdate: ReferentialAction;
  readonly onDelete: ReferentialAction;
  readonly comment: string | null;
};

type ReferentialAction = "no action" | "restrict" | "cascade" | "set null" | "set default";

export type ConstraintRow = {
  oid: number;
  table: number;
  name: string;
  contype: "p" | "u" | "f" | "c" | "x";
  index: number;
  columns: number[] | null;
  target: number;
  targetColumns: number[] | null;
  onUpdate: ActionLetter;
  onDelete: ActionLetter;
  expression: string | null;
  comment: string | null;
};
type ActionLetter = "a" | "r" | "c" | "n" | "d" | " ";

// Omits the copies of foreign keys that Postgres creates on partitions, and foreign keys with a period, which do not match rows
// by equal values.
const constraintsSql = (serverVersion: number) => `
  select k.oid, k.conrelid as table, k.conname as name, k.contype, k.conindid as index,
    k.conkey as columns, k.confrelid as target, k.confkey as "targetColumns",
    k.confupdtype as "onUpdate", k.confdeltype as "onDelete",
    case when k.contype = 'c' and not ${isLocked("c.oid")} then pg_get_expr(k.conbin, k.conrelid) end as expression,
    k.contype = 'c' and ${isLocked("c.oid")} as locked, d.description as comment
  from pg_constraint k join pg_class c on c.oid = k.conrelid
    left join pg_description d on d.classoid = 'pg_constraint'::regclass and d.objoid = k.oid
  where (c.relnamespace = any ($1) or c.oid = any ($2)) and k.contype in ('p', 'u', 'f', 'c', 'x')
    and (k.contype <> 'f' or k.conparentid = 0 ${serverVersion >= 180000 ? "and not k.conperiod" : ""})
  order by k.conrelid, k.conname, k.oid`;

/** Reads the constraints of the tables in these schemas, and of the hidden tables that views show. */
export function readConstraints(
  read: CatalogQuery,
  schemas: readonly number[],
  hiddenTables: readonly number[],
  serverVersion: number,
): Promise<ConstraintRow[]> {
  return read("constraints", constraintsSql(serverVersion), [schemas, hiddenTables]);
}

const REFERENTIAL_ACTIONS: Readonly<Record<ActionLetter, ReferentialAction>> = {
  a: "no action",
  r: "restrict",
  c: "cascade",
  n: "set null",
  d: "set default",
  " ": "no action",
};

/** The names of a table's columns, by their numbers. */
type ColumnNameLookup = (table: number, positions: readonly number[]) => string[];

export function toCheck(row: ConstraintRow, columnNames: ColumnNameLookup): TableCheck {
  return {
    name: row.name,
    kind: row.contype === "c" ? "check" : "exclude",
    columns: columnNames(row.table, row.columns ?? []),
    expression: row.expression,
    comment: row.comment,
  };
}

export function toForeignKey(row: ConstraintRow, target: QualifiedName, columnNames: ColumnNameLookup): ForeignKey {
  return {
    name: row.name,
    columns: columnNames(row.table, row.columns ?? []),
    target: { schema: target.schema, name: target.name },
    targetColumns: columnNames(row.target, row.targetColumns ?? []),
    onUpdate: REFERENTIAL_ACTIONS[row.onUpdate],
    onDelete: REFERENTIAL_ACTIONS[row.onDelete],
    comment: row.comment,
  };
}

export type CatalogIndex = {
  readonly name: string;
  readonly method: string;
  readonly unique: boolean;
  /** The key columns in order; null stands for an expression. */
  readonly columns: readonly (string | null)[];
  /** Columns that the expressions of an index refer to; empty for other indexes, and for partial ones. */
  readonly dependencies: readonly string[];
  /** The predicate of a partial index. */
  readonly predicate: string | null;
  readonly comment: string | null;
};

/** A primary key, unique constraint or unique index on columns. It can be a target of `on conflict`, and identifies one row. */
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
  /** The numbers of the key columns, 0 for an expression: `1 4 0`. */
  positions: string;
  /** The numbers of the columns that its expressions refer to: `3`. */
  mentioned: string;
  predicate: string | null;
  comment: string | null;
};

export function readIndexes(
  read: CatalogQuery,
  schemas: readonly number[],
  serverVersion: number,
): Promise<IndexRow[]> {
  return read("indexes", indexesSql(serverVersion), [schemas]);
}

export function toIndex(row: IndexRow, columnNames: ColumnNameLookup): CatalogIndex {
  const { name, method, unique, predicate, comment } = row;
  const columns = keyPositions(row).map((position) => columnNames(row.table, [position])[0] ?? null);
  const dependencies = columnNames(row.table, parseNumbers(row.mentioned));
  return { name, method, unique, columns, dependencies, predicate, comment };
}

/** Returns null if the index is not unique or has an expression. */
export function toUniqueKey(
  row: IndexRow,
  constraint: ConstraintRow | undefined,
  columnNames: ColumnNameLookup,
): UniqueKey | null {
  const positions = keyPositions(row);
  if (!row.unique || positions.includes(0)) return null;
  return {
    name: constraint?.name ?? row.name,
    kind: constraint ? (constraint.contype === "p" ? "primary key" : "constraint") : "index",
    columns: columnNames(row.table, positions),
    predicate: row.predicate,
    nullsDistinct: row.nullsDistinct,
    deferrable: row.deferrable,
    comment: constraint?.comment ?? row.comment,
  };
}

function keyPositions({ positions }: IndexRow): number[] {
  return parseNumbers(positions);
}

function parseNumbers(text: string): number[] {
  return text === "" ? [] : text.split(" ").map(Number);
}

type JunctionRow = { table: number };

/** The tables that are related to others through junctions in schemas that are not served. */
export async function readHiddenJunctions(read: CatalogQuery, exposedSchemas: readonly number[]): Promise<number[]> {
  const rows = await read<JunctionRow>("hidden junctions", HIDDEN_JUNCTIONS, [exposedSchemas]);
  return rows.map(({ table }) => Number(table));
}
