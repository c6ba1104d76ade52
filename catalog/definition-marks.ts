import type pg from "pg";

const SUM = "pg_catalog.concat(pg_catalog.count(*), ' ', pg_catalog.bit_xor(mark))";
const CLASS = (name: string) => `'pg_catalog.${name}'::pg_catalog.regclass`;

/** The mark of a row that every change writes anew, grants and settings too. Vacuum updates rows in place, which keeps `xmin`. */
const CHANGED = (part: number, ...columns: string[]) =>
  `pg_catalog.hash_record_extended(row(${columns.join(", ")}), ${part})`;

const COLUMNS_OF_RELATION = [
  ...["c.oid", "c.relname", "c.relnamespace", "c.relowner", "c.relkind", "c.relispartition", "c.relrowsecurity"],
  ...["c.relforcerowsecurity", "c.relreplident", "c.relacl", "c.reloptions"],
];

/**
 * `definition_mark` has a row for each part of a definition: its kind (`relation`, `function`, or `other` for what many
 * definitions may depend on, such as types, operators, schemas and roles), its object and a mark that differs after each change.
 * Rows of `pg_class` and of roles are marked by content, because truncate, refresh and changes of passwords rewrite them.
 * Temporary tables are in other schemas. Few tables are joined, because the catalogue is polled: 3,000 tables take about 60 ms.
 * Counters of `pg_stat_sys_tables` would be cheaper, but come up to ten seconds late, and on Postgres 14 perhaps never.
 */
const DEFINITION_MARKS = `
  namespace as (
    select oid from pg_catalog.pg_namespace where nspname !~ '^pg_' and nspname <> 'information_schema'
  ), described (class, object, mark) as (
    select classoid, objoid, ${CHANGED(1, "classoid", "objoid", "objsubid", "xmin")}
    from pg_catalog.pg_description where objoid >= 16384 or classoid = ${CLASS("pg_namespace")}
  ), relation as materialized (
    -- Columns and results of any type may have a composite one.
    select c.oid, ${CHANGED(2, ...COLUMNS_OF_RELATION)} as mark, case c.relkind when 'c' then 'other' else 'relation' end as kind,
      case c.relkind when 'c' then 0::pg_catalog.oid else c.oid end as object,
      case c.relkind when 'c' then ''::pg_catalog.name else c.relname end as name
    from pg_catalog.pg_class c
    where c.relkind in ('r', 'p', 'v', 'm', 'f', 'c') and c.relnamespace in (select oid from namespace)
  ), part_of_relation (relation, mark) as (
    select attrelid, ${CHANGED(3, "attrelid", "attnum", "xmin")} from pg_catalog.pg_attribute where attnum > 0
    union all select adrelid, ${CHANGED(4, "oid", "xmin")} from pg_catalog.pg_attrdef
    union all select indrelid, ${CHANGED(5, "indexrelid", "xmin")} from pg_catalog.pg_index
    union all select polrelid, ${CHANGED(6, "oid", "xmin")} from pg_catalog.pg_policy
    union all select ev_class, ${CHANGED(7, "oid", "xmin")} from pg_catalog.pg_rewrite
    union all select tgrelid, ${CHANGED(8, "oid", "xmin")} from pg_catalog.pg_trigger where tgtype & 64 <> 0
    union all select conrelid, ${CHANGED(9, "oid", "xmin")} from pg_catalog.pg_constraint where contypid = 0
    union all select confrelid, ${CHANGED(10, "oid", "xmin")} from pg_catalog.pg_constraint where confrelid <> 0
    union all select side.oid, ${CHANGED(11, "side.oid", "i.inhrelid", "i.inhparent", "i.xmin")}
      from pg_catalog.pg_inherits i cross join lateral (values (i.inhrelid), (i.inhparent)) as side (oid)
    union all select object, mark from described where class = ${CLASS("pg_class")}
  ), definition_mark (kind, oid, name, mark) as (
    select kind, object, name, mark from relation
    union all select r.kind, r.object, r.name, part.mark from part_of_relation part join relation r on r.oid = part.relation
    union all select 'function', p.oid, p.proname, ${CHANGED(12, "p.oid", "p.xmin")}
      from pg_catalog.pg_proc p where p.pronamespace in (select oid from namespace)
    union all select 'function', p.oid, p.proname, d.mark
      from described d join pg_catalog.pg_proc p on p.oid = d.object
      where d.class = ${CLASS("pg_proc")} and p.pronamespace in (select oid from namespace)
    union all select 'other', 0, '', mark from (
      select ${CHANGED(13, "oid", "xmin")} from pg_catalog.pg_namespace where oid in (select oid from namespace)
      -- Each table has a type, and each type has one of its arrays: they change with what they belong to.
      union all select ${CHANGED(14, "t.oid", "t.xmin")}
        from pg_catalog.pg_type t left join pg_catalog.pg_class c on c.oid = t.typrelid
        where t.typnamespace in (select oid from namespace) and not (t.typelem <> 0 and t.typlen = -1)
          and (c.oid is null or c.relkind = 'c')
      union all select ${CHANGED(15, "oid", "xmin")} from pg_catalog.pg_constraint where contypid <> 0
      union all select ${CHANGED(16, "oid", "xmin")} from pg_catalog.pg_enum
      union all select ${CHANGED(17, "rngtypid", "xmin")} from pg_catalog.pg_range
      union all select ${CHANGED(18, "oid", "xmin")} from pg_catalog.pg_cast
      union all select ${CHANGED(19, "oid", "xmin")} from pg_catalog.pg_operator where oid >= 16384
      union all select ${CHANGED(20, "oid", "xmin")} from pg_catalog.pg_opclass where oid >= 16384
      union all select ${CHANGED(21, "oid", "xmin")} from pg_catalog.pg_amop where oid >= 16384
      union all select ${CHANGED(22, "oid", "xmin")} from pg_catalog.pg_amproc where oid >= 16384
      union all select ${CHANGED(23, "oid", "xmin")} from pg_catalog.pg_collation where oid >= 16384
      union all select ${CHANGED(24, "oid", "xmin")} from pg_catalog.pg_ts_config where oid >= 16384
      union all select ${CHANGED(25, "oid", "xmin")} from pg_catalog.pg_ts_dict where oid >= 16384
      union all select ${CHANGED(26, "mapcfg", "maptokentype", "mapseqno", "xmin")} from pg_catalog.pg_ts_config_map
      union all select ${CHANGED(27, "oid", "xmin")} from pg_catalog.pg_language
      union all select ${CHANGED(28, "oid", "xmin")} from pg_catalog.pg_extension
      union all select mark from described where class not in (${CLASS("pg_class")}, ${CLASS("pg_proc")})
      union all select ${CHANGED(29, "oid", "rolname", "rolsuper", "rolinherit", "rolcanlogin", "rolbypassrls")} from pg_catalog.pg_roles
      union all select ${CHANGED(30, "roleid", "member", "grantor", "xmin")} from pg_catalog.pg_auth_members
      union all select ${CHANGED(31, "s.setdatabase", "s.setrole", "s.xmin")}
        from pg_catalog.pg_db_role_setting s left join pg_catalog.pg_database d on d.oid = s.setdatabase
        where s.setdatabase = 0 or d.datname = pg_catalog.current_database()
      union all select ${CHANGED(32, "d.oid", "d.datname", "d.datdba", "c.xmin")}
        from pg_catalog.pg_database d left join pg_catalog.pg_shdescription c on c.objoid = d.oid
        where d.datname = pg_catalog.current_database()
    ) as others (mark)
  )`;

/** A relation or function, or all else (once), and a mark that differs after each change of its definition. */
export type DefinitionMark = {
  readonly kind: "relation" | "function" | "other";
  readonly oid: number;
  readonly name: string;
  readonly mark: string;
};

/** The marks of all definitions, each by itself. */
export async function readDefinitionMarks(client: pg.ClientBase): Promise<readonly DefinitionMark[]> {
  const { rows } = await client.query<DefinitionMark>(`with ${DEFINITION_MARKS}
    select kind, oid::pg_catalog.int8::pg_catalog.float8 as oid, name::pg_catalog.text as name, ${SUM} as mark
    from definition_mark group by 1, 2, 3`);
  return rows;
}

/** The sum of all marks, unless no transaction was committed since the snapshot of its parameter. */
export const FINGERPRINT = `with ${DEFINITION_MARKS}
  select now.snapshot, case when now.snapshot is distinct from $1 then (select ${SUM} from definition_mark) end as digest
  from (select pg_catalog.pg_current_snapshot()::pg_catalog.text as snapshot) now`;
