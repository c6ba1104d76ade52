import { readFileSync } from "node:fs";
import pg from "pg";
import { serviceFiles } from "./repository.ts";

/** The schema whose objects have the names of those of Postgres. */
export const HOSTILE_SCHEMA = "hostile";

/** Comes before Postgres's own objects, which is the case only if a path names `pg_catalog`. */
export const HOSTILE_PATH = `${HOSTILE_SCHEMA}, pg_catalog, public`;

type HostileOptions = {
  /** The search path of the database: by default `HOSTILE_PATH`. */
  readonly path?: string;
  /** The search path of the owner's sessions, if it is another one. */
  readonly ownerPath?: string;
  /** True if its functions fail when they are called; otherwise they return what those of Postgres return. */
  readonly fails?: boolean;
};

/**
 * Gives the database a search path with a copy of each function, operator, type and relation of Postgres, and with functions and operators
 * that fit the operands of our statements better: Postgres prefers the best match wherever it is on the path. Each writes a row as the role
 * that calls it. Postgres counts the calls of functions, also those in transactions that write nothing.
 */
export async function createHostileSchema(owner: pg.ClientBase, options: HostileOptions = {}): Promise<void> {
  const { path = HOSTILE_PATH, ownerPath = path, fails = false } = options;
  await owner.query(`begin; set local search_path = pg_catalog; set local check_function_bodies = off;
    create schema ${HOSTILE_SCHEMA}; grant usage on schema ${HOSTILE_SCHEMA} to public;
    ${fails ? FAILURE : WITNESS}
    ${executeEach(COPIES)}
    ${executeEach(betterFunctions(calledFunctions()))}
    ${executeEach(BETTER_OPERATORS)}
    grant execute on all functions in schema ${HOSTILE_SCHEMA} to public;
    commit`);
  const { rows } = await owner.query<{ name: string }>("select pg_catalog.current_database() as name");
  const database = pg.escapeIdentifier(rows[0]!.name);
  await owner.query(`
    alter database ${database} set search_path = ${path};
    alter role current_user in database ${database} set search_path = ${ownerPath};
    alter database ${database} set track_functions = 'pl'`);
}

/** Returns the functions of the hostile schema that ended sessions have called, and the roles that it wrote as. */
export async function hostileCalls(owner: pg.ClientBase): Promise<string[]> {
  await owner.query(`begin; set local search_path = pg_catalog`);
  const { rows } = await owner.query<{ call: string }>(
    `select funcid::regprocedure || ' called ' || calls || ' times' as call from pg_stat_user_functions where schemaname = '${HOSTILE_SCHEMA}'
     union all
     select distinct object || ' wrote as ' || role || ': ' || query from ${HOSTILE_SCHEMA}.written order by 1`,
  );
  await owner.query("rollback");
  return rows.map(({ call }) => call);
}

const FAILURE = `
  create function ${HOSTILE_SCHEMA}.note(object text) returns boolean language plpgsql set search_path = pg_catalog, pg_temp as $$
  begin
    raise exception 'hostile: %', object;
  end $$;`;

const WITNESS = `
  create table ${HOSTILE_SCHEMA}.written (role name, object text, query text);
  grant insert on ${HOSTILE_SCHEMA}.written to public;
  create function ${HOSTILE_SCHEMA}.note(object text) returns boolean language plpgsql set search_path = pg_catalog, pg_temp as $$
  begin
    insert into ${HOSTILE_SCHEMA}.written values (current_user, object, left(current_query(), 300));
    return true;
  exception when others then
    -- In a transaction that only reads, the call is counted all the same.
    return true;
  end $$;`;

const executeEach = (statements: string) => `
  do $do$ declare v_each record; begin
    for v_each in ${statements} loop execute v_each.statement; end loop;
  end $do$;`;

/** The functions of Postgres that the service calls, and those that core's GraphQL does. */
function calledFunctions(): string[] {
  const names = serviceFiles().flatMap((file) =>
    [...readFileSync(file, "utf8").matchAll(/\bpg_catalog\.([a-z_0-9]+)\(/g)].map(([, name]) => name!),
  );
  return [...new Set([...names, ...CORE_NAMES])];
}

const CORE_NAMES = ["json_array_elements", "json_build_array", "row_number", "sum", "avg", "min", "max", "to_tsquery"];

const body = (object: string, result: string) =>
  `format('begin perform ${HOSTILE_SCHEMA}.note(%L); ${result} end', ${object})`;

const COPIES = `
  with copied as (
    select oid, proname, proargtypes, prorettype, proretset, provariadic, prokind, proisstrict from pg_proc
    where pronamespace = 'pg_catalog'::regnamespace and prokind in ('f', 'a', 'w')
      and not exists (
        -- PL/pgSQL has neither arguments nor results of these.
        select from pg_type where oid = any (proargtypes::oid[] || prorettype) and typtype = 'p'
          and typname not in ('anyelement', 'anyarray', 'anyenum', 'anynonarray', 'anyrange', 'anymultirange',
            'anycompatible', 'anycompatiblearray', 'anycompatiblenonarray', 'anycompatiblerange', 'record')
      )
  )
  select 1 as position, format(
    'create function ${HOSTILE_SCHEMA}.%I(%s) returns %s%s %s language plpgsql as %L', proname,
    (select string_agg(case when provariadic <> 0 and number = cardinality(proargtypes::oid[]) then 'variadic ' else '' end
        || format_type(type, null), ', ' order by number) from unnest(proargtypes::oid[]) with ordinality as argument (type, number)),
    case when proretset then 'setof ' end,
    format_type(prorettype, null),
    case when proisstrict then 'strict' end,
    case when prokind = 'f' and not proretset then ${body(
      "oid::regprocedure",
      `return pg_catalog.' || quote_ident(proname) || '(' || (select coalesce(string_agg(case when provariadic <> 0 and number = cardinality(proargtypes::oid[]) then 'variadic ' else '' end || '$' || number, ', '), '') from generate_series(1, cardinality(proargtypes::oid[])) as number) || ');`,
    )} else ${body("oid::regprocedure", "return;")} end
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
  select 3, format('create domain ${HOSTILE_SCHEMA}.%I as %s check (${HOSTILE_SCHEMA}.note(%L))', typname, format_type(oid, null), 'type ' || typname)
  from pg_type where typnamespace = 'pg_catalog'::regnamespace and typtype = 'b' and typname not like '\\_%'
  union all
  select 4, format(
    'create view ${HOSTILE_SCHEMA}.%I as select %s from pg_catalog.%1$I where ${HOSTILE_SCHEMA}.note(%L)', relname,
    (select string_agg(format(case atttypid when 'anyarray'::regtype then '%I::text' else '%I' end, attname), ', ' order by attnum)
      from pg_attribute where attrelid = pg_class.oid and attnum > 0), 'relation ' || relname
  )
  from pg_class where relnamespace = 'pg_catalog'::regnamespace and relkind in ('r', 'v') and relname <> 'pg_statistic_ext_data'
  order by 1`;

const list = (types: string) => `string_to_array('${types}', ' ')`;
const FUNCTION_TYPES = "text varchar name int4 int8 bool json jsonb oid regclass record text[] anyelement";
const THIRD_TYPES = "text int4 bool json";
const OPERAND_TYPES = "text varchar int4 int8 bool json jsonb numeric float8 timestamptz interval record text[] json[]";
const OPERATORS = "= <> < > <= >= || -> ->> #>> + - * / ~ ~~ ~* ~~* @> <@ && @@ ^@";

const betterFunctions = (names: readonly string[]) => `
  with called as (
    select proname as name, pronargs::int as arity, bool_or(provariadic <> 0) over (partition by proname) as is_variadic from pg_proc
    where pronamespace = 'pg_catalog'::regnamespace and proname = any ('{${names}}')
  ),
  signature as (
    select name, first as arguments from called, unnest(${list(FUNCTION_TYPES)}) as first
    where arity = 1 and not is_variadic or is_variadic and first <> 'text[]'
    union
    select name, first || ', ' || second from called, unnest(${list(FUNCTION_TYPES)}) as first, unnest(${list(FUNCTION_TYPES)}) as second
    where arity = 2 or is_variadic
    union
    select name, first || ', ' || second || ', ' || third
    from called, unnest(${list(FUNCTION_TYPES)}) as first, unnest(${list(THIRD_TYPES)}) as second, unnest(${list(THIRD_TYPES)}) as third
    where arity = 3 or is_variadic
    union
    select name, 'variadic ' || kind from called, unnest('{text[], anyarray}'::text[]) as kind where is_variadic
  )
  select format(
    'create function ${HOSTILE_SCHEMA}.%I(%s) returns text language plpgsql as %L', name, arguments,
    ${body("name || '(' || arguments || ')'", "return null;")}
  ) as statement
  from signature where to_regprocedure(format('${HOSTILE_SCHEMA}.%I(%s)', name, replace(arguments, 'variadic ', ''))) is null`;

const BETTER_OPERATORS = `
  with operands as (
    select l.type as left, r.type as right from unnest(${list(OPERAND_TYPES)}) as l (type), unnest(${list(OPERAND_TYPES)}) as r (type)
  )
  select 1 as position, format('create function ${HOSTILE_SCHEMA}.operate(%s, %s) returns boolean language plpgsql as %L', "left", "right",
    ${body(`'operator of ' || "left" || ' and ' || "right"`, "return null;")}) as statement
  from operands
  union all
  select 2, format('create operator ${HOSTILE_SCHEMA}.%s (leftarg = %s, rightarg = %s, function = ${HOSTILE_SCHEMA}.operate)', name, "left", "right")
  from operands, unnest(${list(OPERATORS)}) as name
  where to_regoperator(format('${HOSTILE_SCHEMA}.%s(%s, %s)', name, "left", "right")) is null
  order by 1`;
