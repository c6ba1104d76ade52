/** The first number of a user's object; objects with lower numbers come with every database. */
export const FIRST_OBJECT_ID = 16384;

/** Returns SQL that is true if an object was created by neither the database's creation nor an extension. */
export function isOwn(catalog: string, oid: string): string {
  return `${oid} >= ${FIRST_OBJECT_ID} and not ${isExtensionMember(catalog, oid)}`;
}

export function isExtensionMember(catalog: string, oid: string): string {
  return `exists (
    select from pg_depend as membership
    where membership.classid = '${catalog}'::regclass and membership.objid = ${oid} and membership.deptype = 'e'
  )`;
}

/**
 * Returns SQL that is true if a relation belongs neither to an extension, which also creates the parts of its relations, nor
 * to a session.
 */
export function isOwnRelation(oid: string): string {
  return `not (${isExtensionMember("pg_class", oid)} or exists (
    select from pg_class as temporary where temporary.oid = ${oid} and temporary.relpersistence = 't'
  ))`;
}

/** True if a relation is permanent and outside of the schemas that Postgres maintains. */
export const IS_PERMANENT = `class.relpersistence <> 't' and class.relnamespace <> 'pg_toast'::regnamespace`;

/** Returns SQL for the object's kind and name, such as `table public.notes`. */
export function objectName(catalog: string, oid: string, part = "0"): string {
  return `(select type || ' ' || identity from pg_identify_object('${catalog}'::regclass, ${oid}, ${part}))`;
}

/**
 * Returns SQL for a role in a statement. The role that makes the backup is written as `session_user`, so that the restoring
 * role, whatever its name, owns the objects of that role.
 */
export function roleName(oid: string): string {
  return `case when ${oid} = 0 then 'public' when ${oid} = session_user::regrole then 'session_user'
    else quote_ident(pg_get_userbyid(${oid})) end`;
}

/** Returns ` (name 'value', …)` from an array of options of foreign data; null without options. */
export function foreignOptions(options: string): string {
  return `(
    select ' options (' || string_agg(format('%I %L', option_name, option_value), ', ') || ')'
    from pg_options_to_table(${options}) having count(*) > 0
  )`;
}

/** Returns a query of objects, without those that are created with another one, such as the functions of a range type. */
export function objects(
  catalog: string,
  oid: string,
  { statement, from, where }: { readonly statement: string; readonly from: string; readonly where: string },
): string {
  return `
    select '${catalog}'::regclass::oid as catalog, ${oid} as oid, ${objectName(catalog, oid)} as object,
      ${statement} as statement
    from ${from}
    where ${isOwn(catalog, oid)} and (${where}) and not exists (
      select from pg_depend as part
      where part.classid = '${catalog}'::regclass and part.objid = ${oid} and part.deptype = 'i'
        -- A partitioned table depends on its own columns.
        and (part.refclassid, part.refobjid) <> (part.classid, part.objid)
    )`;
}
