import type { CatalogQuery } from "#catalog";
import type {
  DescribedArgument,
  DescribedConstraint,
  DescribedDependent,
  DescribedExtension,
  DescribedFunction,
  DescribedIndex,
  DescribedName,
  DescribedPublication,
  DescribedRole,
  DescribedSequence,
  DescribedTrigger,
} from "#catalog/database-description";
import { quotedName } from "#postgres/client";

/** Matches schemas of Postgres, including those of temporary tables. */
const SYSTEM_SCHEMA = "^pg_|^information_schema$";

const SCHEMA_NAMES = `select nspname as name from pg_catalog.pg_namespace where nspname !~ '${SYSTEM_SCHEMA}' order by nspname`;

const commentOn = (catalogue: string, oid: string) =>
  `(select description from pg_catalog.pg_description where classoid = 'pg_catalog.${catalogue}'::pg_catalog.regclass and objoid = ${oid} and objsubid = 0)`;

const isOfExtension = (catalogue: string, oid: string) =>
  `exists (select from pg_catalog.pg_depend where classid = 'pg_catalog.${catalogue}'::pg_catalog.regclass and objid = ${oid} and objsubid = 0 and deptype = 'e')`;

const TABLE_DETAILS = `
  select c.oid, c.relpersistence = 'u' as unlogged,
    array(
      select pg_catalog.json_build_object('schema', n.nspname, 'name', p.relname)
      from pg_catalog.pg_inherits i join pg_catalog.pg_class p on p.oid = i.inhparent join pg_catalog.pg_namespace n on n.oid = p.relnamespace
      where i.inhrelid = c.oid order by i.inhseqno
    ) as parents,
    case when c.relkind = 'p' then pg_catalog.pg_get_partkeydef(c.oid) end as "partitionKey",
    pg_catalog.pg_get_expr(c.relpartbound, c.oid) as "partitionBound", s.srvname as server,
    case when c.relkind in ('v', 'm') then pg_catalog.pg_get_viewdef(c.oid) end as definition,
    -- -1 for a table that was never analyzed
    case when c.relkind in ('r', 'm') then coalesce(
      nullif(pg_catalog.pg_stat_get_live_tuples(c.oid), 0), case when pg_catalog.pg_relation_size(c.oid) = 0 then 0 else nullif(c.reltuples, -1) end
    )::pg_catalog.float8 end as "estimatedRows",
    case when c.relkind in ('r', 'm') then pg_catalog.pg_total_relation_size(c.oid)::pg_catalog.float8 end as bytes
  from pg_catalog.pg_class c left join pg_catalog.pg_foreign_table f on f.ftrelid = c.oid left join pg_catalog.pg_foreign_server s on s.oid = f.ftserver
  where c.relnamespace = any ($1::pg_catalog.text[]::pg_catalog.regnamespace[]) and c.relkind in ('r', 'p', 'v', 'm', 'f')`;

const COLLATIONS = `
  select a.attrelid as table, a.attname as column, c.oid::pg_catalog.regcollation::pg_catalog.text as collation
  from pg_catalog.pg_attribute a join pg_catalog.pg_class t on t.oid = a.attrelid join pg_catalog.pg_type y on y.oid = a.atttypid
    join pg_catalog.pg_collation c on c.oid = a.attcollation
  where t.relnamespace = any ($1::pg_catalog.text[]::pg_catalog.regnamespace[]) and t.relkind in ('r', 'p', 'f') and a.attnum > 0 and a.attcollation <> y.typcollation`;

const CONSTRAINTS = `
  select k.conrelid as table, k.conname as name,
    case k.contype when 'p' then 'primary key' when 'u' then 'unique' when 'f' then 'foreign key' when 'c' then 'check' else 'exclude' end
      as kind,
    array(
      select a.attname::pg_catalog.text from pg_catalog.unnest(k.conkey) with ordinality as key (number, position)
        join pg_catalog.pg_attribute a on a.attrelid = k.conrelid and a.attnum = key.number
      order by key.position
    ) as columns,
    pg_catalog.pg_get_constraintdef(k.oid) as definition, k.convalidated as valid, k.condeferrable as deferrable,
    k.coninhcount > 0 or k.conparentid <> 0 as inherited, ${commentOn("pg_constraint", "k.oid")} as comment
  from pg_catalog.pg_constraint k
  where k.connamespace = any ($1::pg_catalog.text[]::pg_catalog.regnamespace[]) and k.conrelid <> 0 and k.contype in ('p', 'u', 'f', 'c', 'x')
  order by k.conrelid, position(k.contype in 'pufcx'), k.conname`;

const INDEXES = `
  select i.indrelid as table, x.relname as name, pg_catalog.pg_get_indexdef(i.indexrelid) as definition, m.amname as method,
    i.indisunique as unique, k.conname as constraint, i.indisvalid as valid,
    array(
      select case when key.number > 0 then a.attname::pg_catalog.text end
      from pg_catalog.unnest((i.indkey::pg_catalog.int2[])[0:i.indnkeyatts - 1]) with ordinality as key (number, position)
        left join pg_catalog.pg_attribute a on a.attrelid = i.indrelid and a.attnum = key.number
      order by key.position
    ) as columns,
    pg_catalog.pg_get_expr(i.indpred, i.indrelid) as predicate,
    case when x.relkind = 'i' then pg_catalog.pg_relation_size(i.indexrelid)::pg_catalog.float8 end as bytes,
    pg_catalog.pg_stat_get_numscans(i.indexrelid)::pg_catalog.float8 as scans, ${commentOn("pg_class", "i.indexrelid")} as comment
  from pg_catalog.pg_index i join pg_catalog.pg_class x on x.oid = i.indexrelid join pg_catalog.pg_am m on m.oid = x.relam
    left join pg_catalog.pg_constraint k on k.conindid = i.indexrelid and k.contype in ('p', 'u', 'x')
  where x.relnamespace = any ($1::pg_catalog.text[]::pg_catalog.regnamespace[])
  order by i.indrelid, not i.indisprimary, x.relname`;

const TRIGGERS = `
  select t.tgrelid as table, t.tgname as name, pg_catalog.pg_get_triggerdef(t.oid) as definition,
    case t.tgenabled when 'D' then 'disabled' when 'R' then 'replica' when 'A' then 'always' else 'origin' end as enabled,
    pg_catalog.json_build_object('schema', n.nspname, 'name', p.proname) as function, ${commentOn("pg_trigger", "t.oid")} as comment
  from pg_catalog.pg_trigger t join pg_catalog.pg_class c on c.oid = t.tgrelid join pg_catalog.pg_proc p on p.oid = t.tgfoid
    join pg_catalog.pg_namespace n on n.oid = p.pronamespace
  where c.relnamespace = any ($1::pg_catalog.text[]::pg_catalog.regnamespace[]) and not t.tgisinternal
  order by t.tgrelid, t.tgname`;

/** The objects that depend on columns, as `pg_depend` records them. Postgres parses the text of a function only if it is `begin atomic`. */
const DEPENDENTS = `
  with dependency as (
    select d.classid, d.objid, d.refobjid as relation, a.attname::pg_catalog.text as column
    from pg_catalog.pg_depend d join pg_catalog.pg_class c on c.oid = d.refobjid join pg_catalog.pg_attribute a on a.attrelid = d.refobjid and a.attnum = d.refobjsubid
    where d.refclassid = 'pg_catalog.pg_class'::pg_catalog.regclass and d.refobjsubid > 0 and c.relnamespace = any ($1::pg_catalog.text[]::pg_catalog.regnamespace[])
      and d.classid in ('pg_catalog.pg_policy'::pg_catalog.regclass, 'pg_catalog.pg_rewrite'::pg_catalog.regclass, 'pg_catalog.pg_trigger'::pg_catalog.regclass, 'pg_catalog.pg_attrdef'::pg_catalog.regclass, 'pg_catalog.pg_proc'::pg_catalog.regclass)
  ), dependent as (
    select d.relation, d.column, 'policy' as kind, p.polrelid as owner, p.polname::pg_catalog.text as name
    from dependency d join pg_catalog.pg_policy p on d.classid = 'pg_catalog.pg_policy'::pg_catalog.regclass and p.oid = d.objid
    union all
    select d.relation, d.column, 'view', r.ev_class, null
    from dependency d join pg_catalog.pg_rewrite r on d.classid = 'pg_catalog.pg_rewrite'::pg_catalog.regclass and r.oid = d.objid and r.ev_class <> d.relation
    union all
    select d.relation, d.column, 'trigger', t.tgrelid, t.tgname::pg_catalog.text
    from dependency d join pg_catalog.pg_trigger t on d.classid = 'pg_catalog.pg_trigger'::pg_catalog.regclass and t.oid = d.objid and not t.tgisinternal
    union all
    select d.relation, d.column, 'column', v.adrelid, a.attname::pg_catalog.text
    from dependency d join pg_catalog.pg_attrdef v on d.classid = 'pg_catalog.pg_attrdef'::pg_catalog.regclass and v.oid = d.objid
      join pg_catalog.pg_attribute a on a.attrelid = v.adrelid and a.attnum = v.adnum and a.attname <> d.column
  )
  select d.relation as table, d.kind, n.nspname as schema, coalesce(d.name, o.relname) as name,
    case when d.name is not null then o.relname end as of, pg_catalog.array_agg(distinct d.column order by d.column) as columns
  from dependent d join pg_catalog.pg_class o on o.oid = d.owner join pg_catalog.pg_namespace n on n.oid = o.relnamespace
  group by 1, 2, 3, 4, 5
  union all
  select d.relation, 'function', n.nspname, p.proname, null, pg_catalog.array_agg(distinct d.column order by d.column)
  from dependency d join pg_catalog.pg_proc p on d.classid = 'pg_catalog.pg_proc'::pg_catalog.regclass and p.oid = d.objid join pg_catalog.pg_namespace n on n.oid = p.pronamespace
  group by d.relation, n.nspname, p.proname
  order by 1, 2, 3, 4`;

const FUNCTIONS = `
  select n.nspname as schema, p.proname as name, pg_catalog.pg_get_function_identity_arguments(p.oid) as signature,
    case p.prokind when 'f' then 'function' when 'p' then 'procedure' when 'a' then 'aggregate' else 'window' end as kind,
    pg_catalog.pg_get_function_arguments(p.oid) as arguments, pg_catalog.pg_get_function_result(p.oid) as returns,
    l.lanname as language, case p.provolatile when 'i' then 'immutable' when 's' then 'stable' else 'volatile' end as volatility,
    p.prosecdef as security_definer, p.proisstrict as strict, pg_catalog.pg_get_userbyid(p.proowner) as owner,
    ${commentOn("pg_proc", "p.oid")} as comment,
    pg_catalog.array_to_string(coalesce(p.proacl, pg_catalog.acldefault('f', p.proowner)), E'\\n') as acl,
    p.prokind in ('f', 'p') and p.prorettype not in ('pg_catalog.trigger'::pg_catalog.regtype, 'pg_catalog.event_trigger'::pg_catalog.regtype) as callable,
    case when p.prokind <> 'a' then pg_catalog.pg_get_functiondef(p.oid) end as definition,
    coalesce((
      select pg_catalog.json_agg(pg_catalog.json_build_object(
        'name', nullif(p.proargnames[i], ''), 'type', pg_catalog.format_type(type, null),
        'mode', case mode when 'b' then 'inout' when 'v' then 'variadic' else 'in' end,
        'default', case when p.pronargdefaults > 0 then pg_catalog.pg_get_function_arg_default(p.oid, i::int) end
      ) order by i)
      from unnest(
        coalesce(p.proallargtypes, pg_catalog.string_to_array(p.proargtypes::pg_catalog.text, ' ')::pg_catalog.oid[]), p.proargmodes::pg_catalog.text[]
      ) with ordinality as argument (type, mode, i)
      where type is not null and coalesce(mode, 'i') in ('i', 'b', 'v')
    ), '[]') as inputs
  from pg_catalog.pg_proc p join pg_catalog.pg_namespace n on n.oid = p.pronamespace join pg_catalog.pg_language l on l.oid = p.prolang
  where n.nspname = any ($1) and not ${isOfExtension("pg_proc", "p.oid")}
  order by n.nspname, p.proname, p.pronargs, p.proargtypes::pg_catalog.text`;

const SEQUENCES = `
  select n.nspname as schema, c.relname as name, pg_catalog.format_type(s.seqtypid, null) as type, s.seqstart::pg_catalog.text as start,
    s.seqincrement::pg_catalog.text as increment, s.seqmin::pg_catalog.text as minimum, s.seqmax::pg_catalog.text as maximum, s.seqcycle as cycle,
    (
      select pg_catalog.json_build_object('schema', tn.nspname, 'name', t.relname, 'column', a.attname)
      from pg_catalog.pg_depend d join pg_catalog.pg_class t on t.oid = d.refobjid join pg_catalog.pg_namespace tn on tn.oid = t.relnamespace
        join pg_catalog.pg_attribute a on a.attrelid = t.oid and a.attnum = d.refobjsubid
      where d.classid = 'pg_catalog.pg_class'::pg_catalog.regclass and d.objid = c.oid and d.refclassid = 'pg_catalog.pg_class'::pg_catalog.regclass and d.deptype in ('a', 'i')
      limit 1
    ) as owned_by, ${commentOn("pg_class", "c.oid")} as comment
  from pg_catalog.pg_sequence s join pg_catalog.pg_class c on c.oid = s.seqrelid join pg_catalog.pg_namespace n on n.oid = c.relnamespace
  where n.nspname = any ($1) and not ${isOfExtension("pg_class", "c.oid")}
  order by n.nspname, c.relname`;

const ROLES = `
  select r.rolname as name, (
      select description from pg_catalog.pg_shdescription where classoid = 'pg_catalog.pg_authid'::pg_catalog.regclass and objoid = r.oid
    ) as comment,
    r.rolsuper as superuser, r.rolcanlogin as login, r.rolbypassrls as bypasses_row_security,
    array(select o.rolname::pg_catalog.text from pg_catalog.pg_roles o where pg_catalog.pg_has_role(r.oid, o.oid, 'usage') and (not r.rolsuper or o.oid = r.oid) order by 1)
      as inherits
  from pg_catalog.pg_roles r where r.rolname !~ '^pg_' order by r.rolname`;

const EXTENSIONS = `
  select e.extname as name, n.nspname as schema, e.extversion as version, ${commentOn("pg_extension", "e.oid")} as comment
  from pg_catalog.pg_extension e join pg_catalog.pg_namespace n on n.oid = e.extnamespace order by e.extname`;

const PUBLICATIONS = `
  select p.pubname as name, pg_catalog.pg_get_userbyid(p.pubowner) as owner, p.puballtables as all_tables,
    pg_catalog.array_remove(array[
      case when p.pubinsert then 'insert' end, case when p.pubupdate then 'update' end,
      case when p.pubdelete then 'delete' end, case when p.pubtruncate then 'truncate' end
    ], null) as events,
    coalesce((
      select pg_catalog.json_agg(pg_catalog.json_build_object('schema', t.schemaname, 'name', t.tablename) order by t.schemaname, t.tablename)
      from pg_catalog.pg_publication_tables t where t.pubname = p.pubname
    ), '[]') as tables
  from pg_catalog.pg_publication p order by p.pubname`;

type OfTable<Part> = Part & { readonly table: number };

export type TableDetails = {
  readonly oid: number;
  readonly unlogged: boolean;
  readonly parents: readonly DescribedName[];
  readonly partitionKey: string | null;
  readonly partitionBound: string | null;
  readonly server: string | null;
  readonly definition: string | null;
  readonly estimatedRows: number | null;
  readonly bytes: number | null;
};

type CollationRow = OfTable<{ readonly column: string; readonly collation: string }>;
type FunctionRow = Omit<DescribedFunction, "exposed" | "grants" | "inputs"> & {
  readonly acl: string;
  readonly callable: boolean;
  readonly inputs: readonly DescribedArgument[];
};

export async function readSchemaNames(read: CatalogQuery): Promise<string[]> {
  const rows = await read<{ name: string }>("schema names", SCHEMA_NAMES);
  return rows.map(({ name }) => name);
}

/** Reads details of these schemas, and of the whole database, that are not in the catalogue. */
export async function readDescriptionRows(read: CatalogQuery, schemas: readonly string[]) {
  // The type regnamespace parses a name like SQL does.
  const quoted = schemas.map((name) => quotedName(name));
  return {
    tables: await read<TableDetails>("table details", TABLE_DETAILS, [quoted]),
    collations: await read<CollationRow>("collations", COLLATIONS, [quoted]),
    constraints: await read<OfTable<DescribedConstraint>>("constraint definitions", CONSTRAINTS, [quoted]),
    indexes: await read<OfTable<DescribedIndex>>("index definitions", INDEXES, [quoted]),
    dependents: await read<OfTable<DescribedDependent>>("dependents", DEPENDENTS, [quoted]),
    triggers: await read<OfTable<DescribedTrigger>>("triggers", TRIGGERS, [quoted]),
    functions: await read<FunctionRow>("function definitions", FUNCTIONS, [schemas]),
    sequences: await read<DescribedSequence>("sequences", SEQUENCES, [schemas]),
    roles: await read<Omit<DescribedRole, "settable">>("roles", ROLES),
    extensions: await read<DescribedExtension>("extensions", EXTENSIONS),
    publications: await read<Omit<DescribedPublication, "realtime">>("publications", PUBLICATIONS),
  };
}
