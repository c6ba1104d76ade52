import pg from "pg";

/** The schema whose objects have the names and signatures of those of Postgres. */
export const HOSTILE_SCHEMA = "hostile";

/**
 * Gives the database a search path on which a copy of every function, operator, type and relation of Postgres is found before Postgres's own.
 * The copies of functions fail when they are called, those of relations have no rows.
 */
export async function createHostilePath(owner: pg.ClientBase): Promise<void> {
  await owner.query(`begin; set local search_path = pg_catalog; set local check_function_bodies = off;
    create schema ${HOSTILE_SCHEMA}; grant usage on schema ${HOSTILE_SCHEMA} to public;
    do $do$ declare v_each record; begin
      for v_each in ${COPIES} loop execute v_each.statement; end loop;
    end $do$; commit`);
  const { rows } = await owner.query<{ name: string }>("select pg_catalog.current_database() as name");
  const database = pg.escapeIdentifier(rows[0]!.name);
  await owner.query(`alter database ${database} set search_path = ${HOSTILE_SCHEMA}, pg_catalog, public`);
}

const COPIES = `
  with copied as (
    select oid, proname, proargtypes, prorettype, proretset, provariadic, prokind from pg_proc
    where pronamespace = 'pg_catalog'::regnamespace and prokind in ('f', 'a', 'w')
      and not exists (
        -- PL/pgSQL has neither arguments nor results of these.
        select from pg_type where oid = any (proargtypes::oid[] || prorettype) and typtype = 'p'
          and typname not in ('anyelement', 'anyarray', 'anyenum', 'anynonarray', 'anyrange', 'anymultirange',
            'anycompatible', 'anycompatiblearray', 'anycompatiblenonarray', 'anycompatiblerange', 'record')
      )
  )
  select 1 as position, format(
    'create function ${HOSTILE_SCHEMA}.%I(%s) returns %s%s language plpgsql as %L', proname,
    (select string_agg(case when provariadic <> 0 and number = cardinality(proargtypes::oid[]) then 'variadic ' else '' end
        || format_type(type, null), ', ' order by number) from unnest(proargtypes::oid[]) with ordinality as argument (type, number)),
    case when proretset then 'setof ' end,
    format_type(prorettype, null),
    format('begin raise exception %L; end', 'hostile function: ' || oid::regprocedure)
  ) as statement
  from copied
  union all
  select 2, format(
    'create operator ${HOSTILE_SCHEMA}.%s (%s function = ${HOSTILE_SCHEMA}.%I)', oprname,
    case when oprleft <> 0 then 'leftarg = ' || format_type(oprleft, null) || ', ' else '' end
      || 'rightarg = ' || format_type(oprright, null) || ',', proname)
  from pg_operator join copied on copied.oid = oprcode::oid where oprnamespace = 'pg_catalog'::regnamespace
    and cardinality(proargtypes::oid[]) = case when oprleft <> 0 then 2 else 1 end
  union all
  select 3, format('create domain ${HOSTILE_SCHEMA}.%I as %s', typname, format_type(oid, null))
  from pg_type where typnamespace = 'pg_catalog'::regnamespace and typtype = 'b' and typname not like '\\_%'
  union all
  select 4, format(
    'create view ${HOSTILE_SCHEMA}.%I as select %s from pg_catalog.%1$I where false', relname,
    (select string_agg(format(case atttypid when 'anyarray'::regtype then '%I::text' else '%I' end, attname), ', ' order by attnum)
      from pg_attribute where attrelid = pg_class.oid and attnum > 0)
  )
  from pg_class where relnamespace = 'pg_catalog'::regnamespace and relkind in ('r', 'v') and relname <> 'pg_statistic_ext_data'
  order by 1`;
