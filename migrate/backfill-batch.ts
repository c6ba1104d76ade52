import type pg from "pg";
import { quotedName } from "#postgres/client";
import { ExplainedError } from "#runtime";
import { BACKFILL_TAG } from "./plan-statements.ts";

/** A column to fill: a check constraint that is not valid yet defines the rows, and a trigger fills each row that is written. */
export type Backfill = {
  /** The number of the constraint. */
  readonly id: number;
  /** `public.films` */
  readonly table: string;
  readonly oid: number;
  /** The name as SQL spells it. */
  readonly column: string;
  readonly constraint: string;
  /** An SQL condition that is false in rows that are not filled. */
  readonly isFilled: string;
  /** Empty if there is no primary key. */
  readonly key: readonly BatchKeyColumn[];
  readonly estimatedRows: number;
};

/** A column of the key, with the operators of the key's index. */
type BatchKeyColumn = { readonly name: string; readonly type: string; readonly operatorSchema: string };

const KEY = `
  select pg_catalog.json_agg(pg_catalog.json_build_object('name', attname, 'type', pg_catalog.format_type(atttypid, atttypmod), 'operatorSchema', (
      select nspname from pg_catalog.pg_opclass as class_of_key
      join pg_catalog.pg_amop on amopfamily = opcfamily and amoplefttype = opcintype and amoprighttype = opcintype and amopstrategy = 5
      join pg_catalog.pg_operator as operator on operator.oid = amopopr join pg_catalog.pg_namespace as of_operator on of_operator.oid = oprnamespace
      where class_of_key.oid = indclass[place - 1])) order by place)
  from pg_catalog.pg_index cross join pg_catalog.unnest(indkey::pg_catalog.int2[]) with ordinality as part (number, place)
  join pg_catalog.pg_attribute on attrelid = indrelid and attnum = part.number
  where indrelid = class.oid and indisprimary and place <= indnkeyatts`;

const BACKFILLS = `
  select declared.oid::pg_catalog.int8::pg_catalog.float8 as id, pg_catalog.format('%I.%I', nspname, relname) as table, class.oid::pg_catalog.int8::pg_catalog.float8 as oid, declaration[1] as column, conname as constraint,
    pg_catalog.pg_get_expr(conbin, conrelid) as "isFilled", greatest(reltuples, 0)::pg_catalog.float8 as "estimatedRows", coalesce((${KEY}), '[]') as key
  from pg_catalog.pg_constraint as declared
  join pg_catalog.pg_class as class on class.oid = conrelid join pg_catalog.pg_namespace as namespace on namespace.oid = relnamespace
  cross join pg_catalog.regexp_matches(pg_catalog.obj_description(declared.oid, 'pg_constraint'), '^${BACKFILL_TAG} ([^\\n]+)') as declaration
  where contype = 'c' and not convalidated order by 2, 4`;

/** Reads the backfills in the order of their tables. */
export async function readDeclaredBackfills(client: pg.ClientBase): Promise<Backfill[]> {
  return (await client.query<Backfill>(BACKFILLS)).rows;
}

/** Throws if one of the backfills cannot be run. */
export async function readBackfills(client: pg.ClientBase): Promise<Backfill[]> {
  const rows = await readDeclaredBackfills(client);
  for (const { table, key } of rows) {
    if (key.length === 0)
      throw new Error(`${table} has no primary key, by which its rows are filled in batches. Add one.`);
    if (new Set(key.map(({ operatorSchema }) => operatorSchema)).size > 1)
      throw new Error(`The primary key of ${table} has types of several schemas, which cannot be compared together.`);
  }
  return rows;
}

/** The key of a row as texts; null: before the first row. */
export type KeyValues = readonly string[] | null;

type NextRows = { readonly read: number; readonly missing: number; readonly last: readonly string[] };
type FilledRows = NextRows & { readonly filled: number };

const namesOf = (key: readonly BatchKeyColumn[]) => key.map(({ name }) => quotedName(name));

/** `(id) operator(pg_catalog.>) ($1::bigint)` */
function compareKey(key: readonly BatchKeyColumn[], operator: ">" | "<=", from: number): string {
  const values = key.map(({ type }, at) => `$${from + at + 1}::${type}`);
  const schema = quotedName(key[0]!.operatorSchema);
  return `(${namesOf(key).join(", ")}) operator(${schema}.${operator}) (${values.join(", ")})`;
}

/** The next rows by the key; null at the end of the table. */
export async function readNext(
  client: pg.ClientBase,
  { table, key, isFilled }: Backfill,
  from: KeyValues,
  limit: number,
): Promise<NextRows | null> {
  const names = namesOf(key);
  const texts = names.map((name, at) => `${name}::pg_catalog.text as key_${at}`);
  const last = names.map((_, at) => `(pg_catalog.array_agg(key_${at} order by place desc))[1]`);
  const condition = from === null ? "" : `where ${compareKey(key, ">", 0)}`;
  const { rows } = await client.query<NextRows>(
    `select pg_catalog.count(*)::pg_catalog.float8 as read, pg_catalog.count(*) filter (where is_missing)::pg_catalog.float8 as missing,
       array[${last.join(", ")}] as last
     from (
       select ${texts.join(", ")}, (${isFilled}) is false as is_missing, pg_catalog.row_number() over (order by ${names.join(", ")}) as place
       from ${table} ${condition} order by ${names.join(", ")} limit ${limit}
     ) as next`,
    [...(from ?? [])],
  );
  return rows[0]!.read === 0 ? null : rows[0]!;
}

/**
 * Fills the next rows in one transaction. It waits for no row, so it cannot be part of a deadlock: the session that has locked a row writes it,
 * or leaves it to the next pass. Null at the end of the table.
 */
export async function fillNext(
  client: pg.ClientBase,
  backfill: Backfill,
  from: KeyValues,
  limit: number,
): Promise<FilledRows | null> {
  const next = await readNext(client, backfill, from, limit);
  if (next === null || next.missing === 0) return next && { ...next, filled: 0 };
  const { table, column, key, isFilled } = backfill;
  const names = namesOf(key);
  const bounds = [
    ...(from === null ? [] : [compareKey(key, ">", 0)]),
    compareKey(key, "<=", from?.length ?? 0),
    `(${isFilled}) is false`,
  ];
  const isSame = names.map((name, at) => {
    return `target.${name} operator(${quotedName(key[at]!.operatorSchema)}.=) locked.${name}`;
  });
  const { rows } = await client.query<{ locked: number; filled: number }>(
    `with locked as materialized (
       select ${names.join(", ")} from ${table} where ${bounds.join(" and ")} order by ${names.join(", ")} for no key update skip locked
     ), filled as (
       update ${table} as target set ${column} = target.${column} from locked where ${isSame.join(" and ")} returning 1
     )
     select (select pg_catalog.count(*) from locked)::pg_catalog.float8 as locked, (select pg_catalog.count(*) from filled)::pg_catalog.float8 as filled`,
    [...(from ?? []), ...next.last],
  );
  const { locked, filled } = rows[0]!;
  if (filled < locked)
    throw new ExplainedError(
      `A trigger of ${table} suppresses the updates that fill ${column}. Disable it for the backfill.`,
    );
  return { ...next, filled };
}

type Pressure = {
  /** True if an administrator has asked for a pause. */
  readonly isPaused: boolean;
  /** True if others wait for a lock of the table or of its rows, none of which a batch holds now. */
  readonly isContended: boolean;
  /** The lag of the last replica, as far as the login may see it. */
  readonly lagBytes: number;
};

const PRESSURE = `
  select coalesce((select is_paused from graphile_migrate.backfills where id = $2::pg_catalog.int8::pg_catalog.oid), false) as "isPaused",
    exists (select from pg_catalog.pg_locks where relation = $1::pg_catalog.int8::pg_catalog.oid and (not granted or locktype = 'tuple')
      and database = (select oid from pg_catalog.pg_database where datname = pg_catalog.current_database())) as "isContended",
    coalesce((select pg_catalog.max(pg_catalog.pg_wal_lsn_diff(pg_catalog.pg_current_wal_lsn(), replay_lsn))
      from pg_catalog.pg_stat_replication where state = 'streaming'), 0)::pg_catalog.float8 as "lagBytes"`;

export async function readPressure(client: pg.ClientBase, { id, oid }: Backfill): Promise<Pressure> {
  const { rows } = await client.query<Pressure>(PRESSURE, [oid, id]);
  return rows[0]!;
}
