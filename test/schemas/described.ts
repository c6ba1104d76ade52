import type pg from "pg";

export type Column = {
  readonly name: string;
  /** The name that Postgres gives it, without a length: `character varying`. */
  readonly type: string;
  /** The type that a domain is based on. */
  readonly baseType: string;
  readonly length: number | null;
  readonly precision: number | null;
  readonly scale: number | null;
  /** An enum's labels in their order. */
  readonly labels: readonly string[] | null;
  readonly notNull: boolean;
  readonly hasDefault: boolean;
  /** Nobody but Postgres writes it. */
  readonly generated: boolean;
  /** It is stored nowhere, and so in no log. */
  readonly virtual: boolean;
};

export type ForeignKey = {
  readonly name: string;
  readonly columns: readonly string[];
  readonly target: string;
  readonly targetColumns: readonly string[];
};

export type Check = { readonly columns: readonly string[]; readonly definition: string };

export type Table = {
  readonly schema: string;
  readonly name: string;
  /** r, p, v, m as in pg_class. */
  readonly kind: string;
  readonly isPartition: boolean;
  /** True if Postgres's log has its changes. */
  readonly isLogged: boolean;
  readonly columns: readonly Column[];
  readonly primaryKey: readonly string[];
  /** The columns of its primary key and unique constraints. */
  readonly uniques: readonly (readonly string[])[];
  readonly foreignKeys: readonly ForeignKey[];
  readonly checks: readonly Check[];
};

export type Argument = {
  readonly name: string;
  readonly type: string;
  readonly labels: readonly string[] | null;
  readonly hasDefault: boolean;
};

export type Routine = {
  readonly schema: string;
  readonly name: string;
  readonly volatility: "i" | "s" | "v";
  readonly returns: string;
  readonly returnsSet: boolean;
  readonly variadic: boolean;
  readonly arguments: readonly Argument[];
};

const TABLES = `
  select namespace.nspname as schema, relname as name, relkind as kind, relispartition as "isPartition", relpersistence = 'p' as "isLogged",
    (select coalesce(json_agg(json_build_object(
        'name', attname, 'type', format_type(atttypid, null), 'baseType', format_type(coalesce(nullif(typbasetype, 0), atttypid), null),
        'length', case when atttypmod > 4 and typcategory = 'S' then atttypmod - 4 end,
        'precision', case when atttypmod > 4 and atttypid = 'numeric'::regtype then (atttypmod - 4) >> 16 end,
        'scale', case when atttypmod > 4 and atttypid = 'numeric'::regtype then (atttypmod - 4) & 65535 end,
        'labels', (select json_agg(enumlabel order by enumsortorder) from pg_enum where enumtypid = atttypid),
        'notNull', attnotnull, 'hasDefault', atthasdef or attidentity <> '', 'generated', attgenerated <> '' or attidentity = 'a', 'virtual', attgenerated = 'v') order by attnum), '[]')
      from pg_attribute join pg_type on pg_type.oid = atttypid
      where attrelid = class.oid and attnum > 0 and not attisdropped) as columns,
    (select coalesce(json_agg(attname order by position), '[]')
      from pg_constraint, unnest(conkey) with ordinality as key (number, position)
      join pg_attribute on attnum = number
      where contype = 'p' and conrelid = class.oid and attrelid = class.oid) as "primaryKey",
    (select coalesce(json_agg(
        (select json_agg(attname) from pg_attribute where attrelid = conrelid and attnum = any (conkey))), '[]')
      from pg_constraint where contype in ('p', 'u') and conrelid = class.oid) as uniques,
    (select coalesce(json_agg(json_build_object('name', conname, 'target', target.relname,
        'columns', (select json_agg(attname order by position) from unnest(conkey) with ordinality as key (number, position)
          join pg_attribute on attrelid = conrelid and attnum = number),
        'targetColumns', (select json_agg(attname order by position) from unnest(confkey) with ordinality as key (number, position)
          join pg_attribute on attrelid = confrelid and attnum = number)) order by conname), '[]')
      from pg_constraint join pg_class as target on target.oid = confrelid
      where contype = 'f' and conrelid = class.oid and target.relnamespace = class.relnamespace) as "foreignKeys",
    (select coalesce(json_agg(json_build_object('definition', pg_get_constraintdef(pg_constraint.oid),
        'columns', (select coalesce(json_agg(attname), '[]') from pg_attribute where attrelid = conrelid and attnum = any (conkey)))), '[]')
      from pg_constraint where contype = 'c' and conrelid = class.oid) as checks
  from pg_class as class join pg_namespace as namespace on namespace.oid = relnamespace
  where nspname = $1 and relkind in ('r', 'p', 'v', 'm')
  order by relname`;

const ROUTINES = `
  select nspname as schema, proname as name, provolatile as volatility, proretset as "returnsSet",
    format_type(prorettype, null) as returns, provariadic <> 0 as variadic,
    (select coalesce(json_agg(json_build_object(
        'name', coalesce(proargnames[position], ''), 'type', format_type(argument, null),
        'labels', (select json_agg(enumlabel order by enumsortorder) from pg_enum where enumtypid = argument),
        'hasDefault', position > pronargs - pronargdefaults) order by position), '[]')
      from unnest(proargtypes) with ordinality as each (argument, position)) as arguments
  from pg_proc join pg_namespace on pg_namespace.oid = pronamespace
  where nspname = $1 and prokind = 'f' and prorettype not in ('trigger'::regtype, 'event_trigger'::regtype)
    and not exists (select from pg_depend where classid = 'pg_proc'::regclass and objid = pg_proc.oid and deptype = 'e')
  order by proname, pg_proc.oid`;

/** Reads a schema from the catalogue of Postgres, without code of the service. */
export async function describeTables(client: pg.ClientBase, schema: string): Promise<Table[]> {
  return (await client.query<Table>(TABLES, [schema])).rows;
}

export async function describeRoutines(client: pg.ClientBase, schema: string): Promise<Routine[]> {
  return (await client.query<Routine>(ROUTINES, [schema])).rows;
}
