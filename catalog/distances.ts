import type { CatalogQuery } from "./catalog-query.ts";
import type { QualifiedName } from "./data-types.ts";
import type { Grants } from "./privileges.ts";

/** An operator such as `<->`, or a function, that takes a value of each type and returns their distance or similarity. */
export type DistanceFunction = {
  readonly name: string;
  readonly schema: { readonly name: string; readonly grants: Grants };
  readonly left: QualifiedName;
  readonly right: QualifiedName;
};

type DistanceRow = {
  name: string;
  schema: string;
  acl: string;
  leftSchema: string;
  leftName: string;
  rightSchema: string;
  rightName: string;
};

/**
 * The operators that indexes order by, and the function of pg_trgm; those of extensions come first. Others could run with
 * the rights of any caller, so only those of a superuser or of the database's owner are included.
 */
const DISTANCES = `
  with candidates (class, oid, owner, name, namespace, lefttype, righttype) as (
    select 'pg_catalog.pg_operator'::pg_catalog.regclass, o.oid, o.oprowner, o.oprname::pg_catalog.text, o.oprnamespace, o.oprleft, o.oprright
    from pg_catalog.pg_operator o
    where o.oprname in ('<->', '<=>', '<#>', '<+>') and o.oprleft <> 0 and o.oprright <> 0
    union all
    select 'pg_catalog.pg_proc'::pg_catalog.regclass, p.oid, p.proowner, p.proname::pg_catalog.text, p.pronamespace, p.proargtypes[0], p.proargtypes[1]
    from pg_catalog.pg_proc p
    where p.proname = 'similarity' and p.pronargs = 2 and p.prokind = 'f' and not p.proretset
  ), found as (
    select c.*, case
      when exists (select from pg_catalog.pg_depend d where d.classid = c.class and d.objid = c.oid and d.deptype = 'e') then 1
      when c.namespace = 'pg_catalog'::pg_catalog.regnamespace then 2
      when exists (select from pg_catalog.pg_roles r where r.oid = c.owner and r.rolsuper)
        or exists (select from pg_catalog.pg_database b where b.datname = pg_catalog.current_database() and b.datdba = c.owner) then 3
      end as trust
    from candidates c
  )
  select found.name, n.nspname as schema, pg_catalog.array_to_string(coalesce(n.nspacl, pg_catalog.acldefault('n', n.nspowner)), E'\\n') as acl,
    ln.nspname as "leftSchema", l.typname as "leftName", rn.nspname as "rightSchema", r.typname as "rightName"
  from found
    join pg_catalog.pg_namespace n on n.oid = found.namespace
    join pg_catalog.pg_type l on l.oid = found.lefttype join pg_catalog.pg_namespace ln on ln.oid = l.typnamespace
    join pg_catalog.pg_type r on r.oid = found.righttype join pg_catalog.pg_namespace rn on rn.oid = r.typnamespace
  where found.trust is not null
  order by found.name, found.trust, n.nspname, ln.nspname, l.typname, rn.nspname, r.typname`;

export function readDistances(read: CatalogQuery): Promise<DistanceRow[]> {
  return read("distances", DISTANCES);
}

export function toDistance(row: DistanceRow, grantsOf: (acl: string | null) => Grants): DistanceFunction {
  return {
    name: row.name,
    schema: { name: row.schema, grants: grantsOf(row.acl) },
    left: { schema: row.leftSchema, name: row.leftName },
    right: { schema: row.rightSchema, name: row.rightName },
  };
}
