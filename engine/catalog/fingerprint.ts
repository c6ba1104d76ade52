import type pg from "pg";
import { ask } from "./ask.ts";

/** Two that differ in `digest` mean that something of what the catalogue is made of has changed. */
export type Fingerprint = {
  /** What was committed when it was taken. As long as this stays the same nothing at all has changed. */
  readonly snapshot: string;
  readonly digest: string;
};

/**
 * Every row that the introspection reads from is there by its identity and the transaction that wrote it (`xmin`), so that
 * grants, comments and settings count. `pg_class` and the roles go by content: truncate, refresh and password changes
 * rewrite their rows and change nothing here. Temporary tables live in other schemas, and vacuum writes in place.
 * Counters of `pg_stat_sys_tables` would be cheaper, but come up to ten seconds late, and on Postgres 14 perhaps never.
 */
const FINGERPRINT = `
  with namespace as (
    select oid from pg_namespace where nspname !~ '^pg_' and nspname <> 'information_schema'
  ), relation as materialized (
    select c.oid, hash_record_extended(row(c.oid, c.relname, c.relnamespace, c.reltype, c.relowner, c.relkind,
      c.relispartition, c.relrowsecurity, c.relforcerowsecurity, c.relreplident, c.relacl, c.reloptions), 0) as mark
    from pg_class c
    where c.relkind in ('r', 'p', 'v', 'm', 'f', 'c') and c.relnamespace in (select oid from namespace)
  ), marks (mark) as (
    select hash_record_extended(row(oid, xmin), 1) from pg_namespace where oid in (select oid from namespace)
    union all select mark from relation
    union all select hash_record_extended(row(a.attrelid, a.attnum, a.xmin), 2)
      from pg_attribute a join relation on relation.oid = a.attrelid where a.attnum > 0
    union all select hash_record_extended(row(d.oid, d.xmin), 3)
      from pg_attrdef d join relation on relation.oid = d.adrelid
    union all select hash_record_extended(row(oid, xmin), 4)
      from pg_constraint where connamespace in (select oid from namespace)
    union all select hash_record_extended(row(i.indexrelid, i.xmin), 5)
      from pg_index i join relation on relation.oid = i.indrelid
    union all select hash_record_extended(row(oid, xmin), 6) from pg_policy
    union all select hash_record_extended(row(r.oid, r.xmin), 7)
      from pg_rewrite r join relation on relation.oid = r.ev_class
    union all select hash_record_extended(row(oid, xmin), 8) from pg_trigger where tgtype & 64 <> 0
    union all select hash_record_extended(row(oid, xmin), 9)
      from pg_type where typnamespace in (select oid from namespace)
    union all select hash_record_extended(row(oid, xmin), 10) from pg_enum
    union all select hash_record_extended(row(rngtypid, xmin), 11) from pg_range
    union all select hash_record_extended(row(oid, xmin), 12)
      from pg_proc where pronamespace in (select oid from namespace)
    union all select hash_record_extended(row(oid, xmin), 13) from pg_cast
    union all select hash_record_extended(row(objoid, classoid, objsubid, xmin), 14)
      from pg_description where objoid >= 16384 or classoid = 'pg_namespace'::regclass
    union all select hash_record_extended(row(oid, xmin), 15) from pg_extension
    union all select hash_record_extended(row(oid, rolname, rolsuper, rolinherit, rolcanlogin, rolbypassrls), 16)
      from pg_roles
    union all select hash_record_extended(row(roleid, member, grantor, xmin), 17) from pg_auth_members
    union all select hash_record_extended(row(s.setdatabase, s.setrole, s.xmin), 18)
      from pg_db_role_setting s left join pg_database d on d.oid = s.setdatabase
      where s.setdatabase = 0 or d.datname = current_database()
    union all select hash_record_extended(row(oid, datname, datdba), 19)
      from pg_database where datname = current_database()
    union all select hash_record_extended(row(c.objoid, c.classoid, c.xmin), 20)
      from pg_shdescription c join pg_database d on d.oid = c.objoid and d.datname = current_database()
  )
  select now.snapshot, case when now.snapshot is distinct from $1 then (select concat(count(*), ' ', bit_xor(mark)) from marks) end as digest
  from (select pg_current_snapshot()::text as snapshot) now`;

/** Costs next to nothing when nothing was committed since `known`, and otherwise a pass over the system catalogues. */
export async function readFingerprint(client: pg.ClientBase, known: Fingerprint | null = null): Promise<Fingerprint> {
  const [row] = await ask<{ snapshot: string; digest: string | null }>(client, FINGERPRINT, [known?.snapshot ?? null]);
  const { snapshot, digest } = row!;
  return { snapshot, digest: digest ?? known!.digest };
}
