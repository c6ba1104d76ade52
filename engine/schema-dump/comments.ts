import { label } from "./objects.ts";

/** What belongs to a table (a constraint, an index, …) is read with the table. */
const home = `
  case classoid
    when 'pg_constraint'::regclass then (
      select case conrelid
        when 0 then ${label("pg_type", "contypid")}
        else ${label("pg_class", "conrelid")}
      end from pg_constraint where oid = objoid
    )
    when 'pg_trigger'::regclass then (select ${label("pg_class", "tgrelid")} from pg_trigger where oid = objoid)
    when 'pg_policy'::regclass then (select ${label("pg_class", "polrelid")} from pg_policy where oid = objoid)
    when 'pg_class'::regclass then (
      select case
        when relkind in ('i', 'I') then (
          select ${label("pg_class", "indrelid")} from pg_index where indexrelid = objoid
        )
        when relkind = 'c' then ${label("pg_type", "reltype")}
        else ${label("pg_class", "objoid")}
      end from pg_class where oid = objoid
    )
    else named.type || ' ' || replace(named.identity, 'pg_catalog.', '')
  end`;

export const comments = `
  select
    ${home} as object,
    format(
      'comment on %s %s is %L',
      regexp_replace(named.type, '^.* (column|constraint)$', '\\1'),
      replace(named.identity, 'pg_catalog.', ''),
      description
    ) as statement
  from pg_description
  cross join lateral pg_identify_object(classoid, objoid, objsubid) as named
  -- What comes with every database has a lower number, but for schema public.
  where (objoid >= 16384 or classoid = 'pg_namespace'::regclass and named.identity = 'public')
    and classoid <> 'pg_extension'::regclass
    and not exists (
      select from pg_depend as membership
      where membership.classid = classoid and membership.objid = objoid and membership.deptype = 'e'
    )`;
