import { isExtensionMember, isUsers, labelOf, ONCE, objectLabel } from "./definition.ts";

/** Comments on parts of a table (constraints, indexes, …) are listed with the table. */
const commentedObject = `
  case classoid
    when 'pg_constraint'::regclass then (
      select case conrelid
        when 0 then ${objectLabel("pg_type", "contypid")}
        else ${objectLabel("pg_class", "conrelid")}
      end from pg_constraint where oid = objoid
    )
    when 'pg_trigger'::regclass then (select ${objectLabel("pg_class", "tgrelid")} from pg_trigger where oid = objoid)
    when 'pg_policy'::regclass then (select ${objectLabel("pg_class", "polrelid")} from pg_policy where oid = objoid)
    when 'pg_rewrite'::regclass then (select ${objectLabel("pg_class", "ev_class")} from pg_rewrite where oid = objoid)
    when 'pg_class'::regclass then (
      select case
        when relkind in ('i', 'I') then (
          select ${objectLabel("pg_class", "indrelid")} from pg_index where indexrelid = objoid
        )
        when relkind = 'c' then ${objectLabel("pg_type", "reltype")}
        else ${objectLabel("pg_class", "objoid")}
      end from pg_class where oid = objoid
    )
    else ${labelOf("classoid", "objoid")}
  end`;

/** A query of `SchemaRow`. */
export const comments = `
  select object, 'the ' || comment as name, statement as text, statement, comment || ' is null' as remove,
    statement as replacement
  from (
    select ${commentedObject} as object, comment, format('%s is %L', comment, description) as statement
    from pg_description
    cross join lateral pg_identify_object(classoid, objoid, objsubid) as named
    cross join lateral (select format(
      'comment on %s %s',
      regexp_replace(
        replace(named.type, 'foreign-data', 'foreign data'), '^.* (column|constraint)$|^(statistics) object$', '\\1\\2'
      ),
      coalesce(
        (
          select format('%I on domain %s', conname, format_type(contypid, null)) from pg_constraint
          where classoid = 'pg_constraint'::regclass and oid = objoid and contypid <> 0
        ),
        replace(named.identity, 'pg_catalog.', '')
      )
    ) as comment) as commented
    -- What comes with every database has a lower number, but for schema public.
    where (${isUsers("objoid")} or classoid = 'pg_namespace'::regclass and objoid = to_regnamespace('public'))
      and classoid <> 'pg_extension'::regclass
      and not ${isExtensionMember("classoid", "objoid")}
      and not exists (
        select from pg_depend as part join pg_depend as membership
          on membership.classid = part.refclassid and membership.objid = part.refobjid and membership.deptype = 'e'
        where part.classid = classoid and part.objid = objoid and part.deptype in ('a', 'i')
          and part.refclassid = 'pg_class'::regclass and classoid <> 'pg_policy'::regclass
      )
    ${ONCE}
  ) as described`;
