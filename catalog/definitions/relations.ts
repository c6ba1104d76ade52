import {
  collationClause,
  constraintLine,
  type DefinitionForm,
  defineObjects,
  foreignOptions,
  IS_PERMANENT,
  isOwn,
  ONCE,
  objectLabel,
} from "./definition.ts";

export const SEQUENCE_OPTIONS = `format(
  'start with %s increment by %s minvalue %s maxvalue %s cache %s%s',
  seqstart, seqincrement, seqmin, seqmax, seqcache, case when seqcycle then ' cycle' end
)`;

/** Comparisons leave out the options of the sequence. Since Postgres 17, partitions have the sequence of their parent. */
const identity = ({ version, isArchive }: DefinitionForm) => `(
  select format(
    'generated %s as identity%s', case attidentity when 'a' then 'always' else 'by default' end,
    ${isArchive ? `format(' (sequence name %s %s)', seqrelid::regclass, ${SEQUENCE_OPTIONS})` : "''"}
  )
  from pg_depend join pg_sequence on seqrelid = objid
  where refclassid = 'pg_class'::regclass and refobjid = attrelid and refobjsubid = attnum and deptype = 'i'
    and classid = 'pg_class'::regclass ${version >= 170000 ? "and not class.relispartition" : ""}
)`;

const notNull = ({ version, isArchive }: DefinitionForm) =>
  isArchive && version >= 180000
    ? `(
        select format('constraint %I not null', conname) || case when connoinherit then ' no inherit' else '' end
        from pg_constraint
        where conrelid = attrelid and contype = 'n' and conkey = array[attnum] and convalidated
      )`
    : "case when attnotnull then 'not null' end";

/**
 * The columns of a table. An archive writes defaults later, because they may need other objects, and inherited columns with
 * the parent. Partitions have the columns of their parent, but in their own order.
 */
const columns = (form: DefinitionForm) => `
  select concat_ws(
      ' ', quote_ident(attname), "typeName", 'compression ' || compression,
      case when attfdwoptions is not null then ltrim(${foreignOptions("attfdwoptions")}) end, ltrim("collation"), identity,
      case when attgenerated <> '' then
        format('generated always as (%s) %s', expression, case attgenerated when 's' then 'stored' else 'virtual' end)
      end,
      ${form.isArchive ? "" : "'default ' || fallback,"}
      ${notNull(form)}
    ) as line,
    1 as kind, lpad(attnum::text, 5) as position, 'column ' || quote_ident(attname) as part,
    to_json(column_of.*) as "column"
  from pg_attribute
  left join pg_attrdef on adrelid = attrelid and adnum = attnum
  cross join lateral (select pg_get_expr(adbin, adrelid) as expression) as printed
  cross join lateral (
    select quote_ident(attname) as name, format_type(atttypid, atttypmod) as "typeName",
      ${collationClause("attcollation", "atttypid")} as "collation",
      case attcompression when 'p' then 'pglz' when 'l' then 'lz4' end as compression,
      case when attgenerated = '' then expression end as fallback,
      attnotnull as "notNull", case when attidentity <> '' then ${identity(form)} end as identity,
      attgenerated <> '' as "isGenerated"
    ${ONCE}
  ) as column_of
  where attrelid = class.oid and attnum > 0 and not attisdropped
    ${form.isArchive ? "and (attislocal or class.relispartition)" : ""}`;

/** Leaves out not-null constraints (since Postgres 18), which are written with their column. */
const constraints = `
  select ${constraintLine("oid")} as line, position(contype in 'pucfx') + 1 as kind, conname::text as position,
    'constraint ' || quote_ident(conname) as part, null::json as "column"
  from pg_constraint
  where conrelid = class.oid and contype in ('p', 'u', 'c', 'f', 'x')`;

const linesOf = (form: DefinitionForm) =>
  `(${columns(form)} ${form.isArchive ? "" : `union all ${constraints}`}) as lines`;

const TABLE_OPTIONS = `(
  select unnest(class.reloptions)
  union all
  select 'toast.' || unnest(toast.reloptions) from pg_class as toast where toast.oid = class.reltoastrelid
) as options (option)`;

/** An archive attaches partitions later, and adds constraints when the rows are there. */
const tables = (form: DefinitionForm) =>
  defineObjects("pg_class", "class.oid", {
    statement: `concat(
      'create ', case when relpersistence = 'u' then 'unlogged ' end, case when relkind = 'f' then 'foreign ' end,
      'table ', class.oid::regclass, e' (\\n',
      (select string_agg('  ' || line, e',\\n' order by kind, position collate "C") from ${linesOf(form)}), e'\\n)',
      (
        select ' inherits (' || string_agg(inhparent::regclass::text, ', ' order by inhseqno) || ')'
        from pg_inherits where inhrelid = class.oid and not relispartition having count(*) > 0
      ),
      case when relkind = 'p' then ' partition by ' || pg_get_partkeydef(class.oid) end,
      (select format(' using %I', amname) from pg_am where pg_am.oid = relam and amname <> 'heap'),
      ' with (' || (select string_agg(option, ', ') from ${TABLE_OPTIONS}) || ')',
      (
        select format(' server %I', srvname) || coalesce(${foreignOptions("ftoptions")}, '')
        from pg_foreign_table join pg_foreign_server on pg_foreign_server.oid = ftserver where ftrelid = class.oid
      )
    )`,
    from: "pg_class as class",
    where: `relkind in ('r', 'p', 'f') and ${IS_PERMANENT}`,
  });

/** Comparisons leave out sequences of serial columns, which are part of their tables. */
const sequences = ({ isArchive }: DefinitionForm) =>
  defineObjects("pg_class", "class.oid", {
    statement: `format(
      'create %ssequence %s as %s %s', case when relpersistence = 'u' then 'unlogged ' end,
      class.oid::regclass, format_type(seqtypid, null), ${SEQUENCE_OPTIONS}
    )`,
    from: "pg_class as class join pg_sequence on seqrelid = class.oid",
    where: `${IS_PERMANENT} and not exists (
      select from pg_depend
      where classid = 'pg_class'::regclass and objid = class.oid and deptype in (${isArchive ? "'i'" : "'i', 'a'"})
    )`,
    replacement: `regexp_replace(statement, '^create (unlogged )?', 'alter ')
      || case when statement !~ ' cycle$' then ' no cycle' else '' end`,
  });

/** An archive fills materialized views when the rows are there. */
const views = ({ isArchive }: DefinitionForm) =>
  defineObjects("pg_class", "class.oid", {
    statement: `concat(
      'create ', case when relkind = 'm' then 'materialized ' end, 'view ', class.oid::regclass,
      (select format(' using %I', amname) from pg_am where pg_am.oid = relam and amname <> 'heap'),
      ' with (' || array_to_string(reloptions, ', ') || ')', e' as\\n', rtrim(pg_get_viewdef(class.oid), ';')
      ${isArchive ? `, case when relkind = 'm' then e'\\n  with no data' end` : ""}
    )`,
    from: "pg_class as class",
    where: `relkind in ('v', 'm') and ${IS_PERMANENT}`,
    replacement: "case when starts_with(statement, 'create view') then 'create or replace' || substr(statement, 7) end",
  });

/** The definitions in the order of their dependencies. */
export function relationDefinitions(form: DefinitionForm) {
  return [tables(form), sequences(form), views(form)];
}

/**
 * A query of `SchemaRow`: the parts of the definitions of tables, one per row, so that a changed one is found. A foreign table
 * is compared as a whole.
 */
export const tablePartQuery = (form: DefinitionForm) => `
  select object, part || ' of ' || object as name, coalesce(line, statement) as text, statement, remove,
    null as replacement, "column"
  from (
    select ${objectLabel("pg_class", "class.oid")} as object, part, line, "column",
      format('alter table %s %s', class.oid::regclass, setting) as statement,
      format('alter table %s %s', class.oid::regclass, reset) as remove
    from pg_class as class cross join lateral (
      select part, line, concat('add ', case when kind = 1 then 'column ' end, line), 'drop ' || part, "column"
      from ${linesOf(form)}
      union all
      select 'option ' || split_part(option, '=', 1), null,
        format('set (%s=%L)', split_part(option, '=', 1), substr(option, strpos(option, '=') + 1)),
        format('reset (%s)', split_part(option, '=', 1)), null
      from ${TABLE_OPTIONS}
      union all
      select 'the persistence', null, 'set unlogged', 'set logged', null where relpersistence = 'u'
      union all
      select 'the access method', null, format('set access method %I', amname), 'set access method heap', null
      from pg_am where pg_am.oid = relam and amname <> 'heap'
      union all
      select 'the inheritance from ' || inhparent::regclass, null, 'inherit ' || inhparent::regclass,
        'no inherit ' || inhparent::regclass, null
      from pg_inherits where inhrelid = class.oid and not relispartition
    ) as property (part, line, setting, reset, "column")
    where relkind in ('r', 'p') and ${isOwn("pg_class", "class.oid")} and ${IS_PERMANENT}
    ${ONCE}
  ) as parts`;
