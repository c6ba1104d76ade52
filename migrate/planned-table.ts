import type pg from "pg";
import { queryApiSchema } from "#postgres/client";
import { tryStatement } from "./try-statement.ts";

export type PlannedColumn = {
  readonly name: string;
  /** The name as SQL spells it. */
  readonly quoted: string;
  readonly type: string;
  readonly isNotNull: boolean;
  readonly default: string | null;
  readonly comment: string | null;
  /** The grants on the column alone: `grant select (…)`. */
  readonly grants: readonly { readonly privilege: string; readonly roles: string }[];
};

/** An index that can be created again on another column. */
type PlainIndex = { readonly name: string; readonly quotedSchema: string; readonly definition: string };

/** A table with the columns that a plan replaces. */
export type PlannedTable = {
  readonly name: string;
  readonly quotedSchema: string;
  /** `public.films` */
  readonly quoted: string;
  readonly columns: readonly PlannedColumn[];
  readonly names: readonly string[];
  readonly indexes: readonly PlainIndex[];
  /** The objects that Postgres would drop with the columns, or that prevent dropping them, except their defaults and plain indexes. */
  readonly dependents: readonly string[];
  readonly apiVersions: ApiVersionChange | null;
  /** The last trigger that runs before a row is written, other than those of plans. */
  readonly lastTrigger: string | null;
};

/** The last version of /api that keeps the old columns, and the first one with the new columns; null if there is only one version. */
type ApiVersionChange = { readonly until: number; readonly since: number };

const TABLE = `
  select class.oid, relname as name, quote_ident(nspname) as "quotedSchema", format('%I.%I', nspname, relname) as quoted,
    (select json_agg(attname) from pg_attribute where attrelid = class.oid and attnum > 0 and not attisdropped) as names,
    exists (select from pg_constraint where conrelid = class.oid and contype = 'p') as "hasPrimaryKey",
    (select max(tgname::text collate "C") from pg_trigger where tgrelid = class.oid and not tgisinternal and tgtype & 3 = 3 and tgtype & 20 <> 0
        and tgname !~ '^(_|zz_)990_fill_') as "lastTrigger"
  from pg_class as class join pg_namespace as namespace on namespace.oid = relnamespace
  where nspname = $1 and relname = $2 and relkind in ('r', 'p')`;

const COLUMNS = `
  select attname as name, quote_ident(attname) as quoted, format_type(atttypid, atttypmod) as type, attnotnull as "isNotNull",
    pg_get_expr(adbin, adrelid) as default, attgenerated <> '' as "isGenerated", col_description(attrelid, attnum) as comment, (
      select coalesce(json_agg(json_build_object('privilege', privilege, 'roles', roles) order by privilege), '[]') from (
        select lower(privilege_type) as privilege, string_agg(case grantee when 0 then 'public' else quote_ident(pg_get_userbyid(grantee)) end, ', ' order by grantee) as roles
        from aclexplode(attacl) group by privilege_type) as privileges) as grants, attnum as number
  from pg_attribute left join pg_attrdef on adrelid = attrelid and adnum = attnum
  where attrelid = $1 and attname = any ($2) and attnum > 0 and not attisdropped order by array_position($2, attname::text)`;

const PLAIN_INDEX =
  "indpred is null and indexprs is null and not exists (select from pg_constraint where conindid = indexrelid)";

const INDEXES = `
  select quote_ident(relname) as name, quote_ident(nspname) as "quotedSchema", pg_get_indexdef(indexrelid) as definition
  from pg_index join pg_class as class on class.oid = indexrelid join pg_namespace as namespace on namespace.oid = relnamespace
  where indrelid = $1 and indkey::int2[] && $2::int2[] and ${PLAIN_INDEX} order by relname`;

/** Leaves out not-null constraints (Postgres 18), which are dropped with their column. */
const DEPENDENTS = `
  select distinct pg_describe_object(classid, objid, objsubid) as object from pg_depend
  where refclassid = 'pg_class'::regclass and refobjid = $1 and refobjsubid = any ($2::int4[])
    and not (classid = 'pg_attrdef'::regclass and objid in (select oid from pg_attrdef where adrelid = $1 and adnum = any ($2::int2[])))
    and not (classid = 'pg_constraint'::regclass and objid in (select oid from pg_constraint where contype = 'n'))
    and not (classid = 'pg_class'::regclass and objid in (select indexrelid from pg_index where indrelid = $1 and ${PLAIN_INDEX}))
  order by object`;

/** Call in a transaction with an empty search path. Throws if the table or a column does not exist. */
export async function readPlannedTable(
  client: pg.ClientBase,
  [schema, table]: readonly [schema: string, table: string],
  columns: readonly string[],
): Promise<PlannedTable> {
  const { rows: tables } = await client.query(TABLE, [schema, table]);
  if (!tables[0]) throw new Error(`There is no table ${schema}.${table}.`);
  const { oid, hasPrimaryKey, ...found } = tables[0];
  if (!hasPrimaryKey)
    throw new Error(`${found.quoted} has no primary key, by which its rows are filled. Add one before.`);
  const { rows } = await client.query<PlannedColumn & { number: number; isGenerated: boolean }>(COLUMNS, [
    oid,
    columns,
  ]);
  const missing = columns.find((wanted) => !rows.some(({ name }) => name === wanted));
  if (missing !== undefined) throw new Error(`${found.quoted} has no column ${missing}.`);
  const generated = rows.find(({ isGenerated }) => isGenerated);
  if (generated) throw new Error(`${found.quoted}.${generated.quoted} is generated, so no client writes it.`);
  const numbers = rows.map(({ number }) => number);
  const { rows: indexes } = await client.query<PlainIndex>(INDEXES, [oid, numbers]);
  const { rows: dependents } = await client.query<{ object: string }>(DEPENDENTS, [oid, numbers]);
  return {
    ...found,
    columns: rows,
    indexes,
    dependents: dependents.map(({ object }) => object),
    apiVersions: await readApiVersions(client),
  };
}

export function requireNoDependents({ quoted, dependents }: PlannedTable): void {
  if (dependents.length === 0) return;
  throw new Error(
    `The plan would drop what depends on the column of ${quoted}: ${dependents.join("; ")}. Drop it before, or write the migrations by hand.`,
  );
}

/** If the table does not exist, the interface has versions 1 and 2. */
async function readApiVersions(client: pg.ClientBase): Promise<ApiVersionChange | null> {
  const { rows: tables } = await queryApiSchema<{ exists: boolean }>(
    client,
    "select to_regclass('api.versions') is not null as exists",
  );
  if (!tables[0]!.exists) return { until: 1, since: 2 };
  const { rows } = await queryApiSchema<{ numbers: number[] }>(
    client,
    "select coalesce(array_agg(number order by number), '{}') as numbers from api.versions where status <> 'retired'",
  );
  const [since, until] = rows[0]!.numbers.toReversed();
  return since === undefined || until === undefined ? null : { until, since };
}

const UNDEFINED_FUNCTION = "42883";

/** True if values of the type can be compared; values of json, xml and point cannot. */
export async function hasEquality(client: pg.ClientBase, type: string): Promise<boolean> {
  const error = await tryStatement(
    client,
    `select probed from (select null::${type} as probed) as probe group by probed`,
  );
  if (error && error.code !== UNDEFINED_FUNCTION) throw error;
  return error === null;
}

/** The types of expressions over columns, which come from a table or a subquery. */
export async function readExpressionTypes(
  client: pg.ClientBase,
  expressions: readonly string[],
  relation: string,
): Promise<string[]> {
  const { fields } = await client.query(`select ${expressions.join(", ")} from ${relation} limit 0`);
  const { rows } = await client.query<{ type: string }>(
    "select format_type(type_oid, nullif(modifier, -1)) as type from unnest($1::oid[], $2::int4[]) with ordinality as found (type_oid, modifier, place) order by place",
    [fields.map(({ dataTypeID }) => dataTypeID), fields.map(({ dataTypeModifier }) => dataTypeModifier)],
  );
  return rows.map(({ type }) => type);
}
