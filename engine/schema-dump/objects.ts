/** Postgres's own catalogues, and what graphile-migrate keeps about itself, are not part of a schema. */
const FOREIGN_SCHEMAS = "namespace.nspname !~ '^pg_|^information_schema$|^graphile_migrate$'";

/** What `table public.notes` and the like are called; `catalogue` is where the object is listed, such as pg_class. */
export function label(catalogue: string, oid: string): string {
  return `(
    select type || ' ' || replace(identity, 'pg_catalog.', '')
    from pg_identify_object('${catalogue}'::regclass, ${oid}, 0)
  )`;
}

/** Joins an object's schema and leaves out what is not the database's own: see above, and members of extensions. */
export function ours(catalogue: string, oid: string, schema: string): string {
  return `
    join pg_namespace as namespace on namespace.oid = ${schema} and ${FOREIGN_SCHEMAS}
      and not exists (
        select from pg_depend as membership
        where membership.classid = '${catalogue}'::regclass and membership.objid = ${oid} and membership.deptype = 'e'
      )`;
}

/** How a trigger was set to fire; null when it fires as triggers do. */
export function firing(enabled: string): string {
  return `case ${enabled} when 'D' then 'disable' when 'R' then 'enable replica' when 'A' then 'enable always' end`;
}
