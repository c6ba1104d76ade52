/** Objects with lower numbers come with every database. */
export const FIRST_OBJECT_ID = 16384;

/** Whether an object was created here, neither with the database nor by an extension. */
export function isOwn(catalog: string, oid: string): string {
  return `${oid} >= ${FIRST_OBJECT_ID} and not ${isExtensionMember(catalog, oid)}`;
}

export function isExtensionMember(catalog: string, oid: string): string {
  return `exists (
    select from pg_depend as membership
    where membership.classid = '${catalog}'::regclass and membership.objid = ${oid} and membership.deptype = 'e'
  )`;
}

/** Whether a relation was created neither by an extension, which creates what belongs to its relations, too, nor for a session. */
export function isOwnRelation(oid: string): string {
  return `not (${isExtensionMember("pg_class", oid)} or exists (
    select from pg_class as temporary where temporary.oid = ${oid} and temporary.relpersistence = 't'
  ))`;
}

/** Whether a relation is permanent, outside of the schemas that Postgres maintains. */
export const IS_PERMANENT = `class.relpersistence <> 't' and class.relnamespace <> 'pg_toast'::regnamespace`;

/** The object's kind and name, such as `table public.notes`. */
export function objectName(catalog: string, oid: string, part = "0"): string {
  return `(select type || ' ' || identity from pg_identify_object('${catalog}'::regclass, ${oid}, ${part}))`;
}

/**
 * A role in a statement. The one that makes the backup is written as `session_user`, so that what belongs to it belongs to the
 * one that restores, whatever its name.
 */
export function roleName(oid: string): string {
  return `case when ${oid} = 0 then 'public' when ${oid} = session_user::regrole then 'session_user'
    else quote_ident(pg_get_userbyid(${oid})) end`;
}

/** ` (name 'value', …)` from an array of options of foreign data; null without options. */
export function foreignOptions(options: string): string {
  return `(
    select ' options (' || string_agg(format('%I %L', option_name, option_value), ', ') || ')'
    from pg_options_to_table(${options}) having count(*) > 0
  )`;
}

/** A query of objects, without those that are created with another one, such as the functions of a range type. */
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
