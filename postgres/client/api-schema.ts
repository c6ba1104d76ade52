import type pg from "pg";
import { SAFE_SEARCH_PATH } from "./search-path.ts";

type QueryClient = Pick<pg.ClientBase, "query">;

/** The names of the service's tables in schema `api`. */
const TABLES = ["versions", "schedules", "schedule_runs", "webhooks"];
/** The signatures of the service's functions in schema `api`; the last ones belong to the example application. */
export const API_FUNCTIONS: readonly string[] = [
  "cancel_task(uuid)",
  "discard_webhook_deliveries(text, timestamptz, timestamptz)",
  "enqueue(text, jsonb, timestamptz, text)",
  "enqueue_as(text, text, jsonb, timestamptz, text, jsonb)",
  "field_error(regclass, text)",
  "list_tasks()",
  "read_task(uuid)",
  "replay_webhook_deliveries(text, timestamptz, timestamptz)",
  "report_progress(integer)",
  "run_schedule(text)",
  "matching_articles(text)",
  "related_articles(bigint, text[], integer)",
  "search_articles(text)",
  "translated_title(bigint, text)",
];
const NAMES = [...TABLES, ...API_FUNCTIONS.map((signature) => signature.split("(")[0]!)];

const OWN_NAME = new RegExp(`(?<![\\w.])api\\.(?=(?:${NAMES.join("|")})\\b)`, "g");
const OWN_SCHEMA = "content_service";

/** The query reads the catalogue, so it does not fail if the schema does not exist or is not accessible. */
const IS_MOVED = `
  select from pg_catalog.pg_class
  where relname operator(pg_catalog.=) 'versions' and relnamespace operator(pg_catalog.=) (
    select oid from pg_catalog.pg_namespace where nspname operator(pg_catalog.=) '${OWN_SCHEMA}'
  )`;

/**
 * Returns SQL of the service for this database. Names of the service in schema `api` become names in `content_service` if the project
 * has a schema `api` of its own.
 */
export async function placeApiNames(client: QueryClient, sql: string): Promise<string> {
  const moved = moveApiNames(sql);
  return moved !== sql && (await hasMovedApiNames(client)) ? moved : sql;
}

/** Runs SQL of the service that may name its objects in schema `api`. */
export async function queryApiSchema<Row extends pg.QueryResultRow>(
  client: QueryClient,
  sql: string,
  values: unknown[] = [],
): Promise<pg.QueryResult<Row>> {
  return client.query<Row>(await placeApiNames(client, sql), values);
}

/** True if the service's objects of schema `api` are in schema `content_service`. */
export async function hasMovedApiNames(client: QueryClient): Promise<boolean> {
  return (await client.query(IS_MOVED)).rowCount === 1;
}

/** Replaces schema `api` in SQL of the service. Without an object, the schema is the literal `'api'`. */
export function moveApiNames(sql: string): string {
  return sql.replace(OWN_NAME, `${OWN_SCHEMA}.`).replace(/'api'/g, `'${OWN_SCHEMA}'`);
}

const list = (texts: readonly string[]) => texts.map((text) => `'${text}'`).join(", ");
const PATTERN = `(^|[^A-Za-z0-9_.])api[.](${NAMES.join("|")})(?![A-Za-z0-9_])`;

/**
 * Moves the service's objects from schema `api` to `content_service`, and drops the schema if nothing else is in it. Functions with a
 * string body, and comments, contain the name of the schema, so the statement writes them again.
 */
const MOVE = `
do $move$
declare
  v_path text := pg_catalog.current_setting('search_path');
  v_name text;
  v_function pg_catalog.regprocedure;
  v_definition text;
  v_names_schema boolean;
begin
  if pg_catalog.to_regclass('api.versions') is null or pg_catalog.to_regclass('content_service.bounds') is null or pg_catalog.to_regclass('content_service.versions') is not null then
    return;
  end if;
  perform pg_catalog.set_config('search_path', '${SAFE_SEARCH_PATH}', true);
  foreach v_name in array array[${list(TABLES)}] loop
    if pg_catalog.to_regclass('api.' || v_name) is not null then
      execute pg_catalog.format('alter table api.%I set schema content_service', v_name);
    end if;
  end loop;
  foreach v_name in array array[${list(API_FUNCTIONS)}] loop
    if pg_catalog.to_regprocedure('api.' || v_name) is not null then
      execute pg_catalog.format('alter function api.%s set schema content_service', v_name);
    end if;
  end loop;
  for v_function, v_names_schema in
    select oid, names_schema from pg_catalog.pg_proc
    cross join lateral (
      select oid in (
        pg_catalog.to_regprocedure('content_service.is_served(pg_class)'), pg_catalog.to_regprocedure('content_service.tg_webhooks__check()'),
        pg_catalog.to_regprocedure('auth.tg__keep_schemas()')
      ) as names_schema
    ) as known
    where prokind in ('f', 'p') and (prosrc ~ '${PATTERN}' or names_schema)
      and pronamespace not in ('pg_catalog'::pg_catalog.regnamespace, 'information_schema'::pg_catalog.regnamespace)
  loop
    v_definition := pg_catalog.regexp_replace(pg_catalog.pg_get_functiondef(v_function), '${PATTERN}', '\\1content_service.\\2', 'g');
    if v_names_schema then
      v_definition := pg_catalog.replace(v_definition, '''api''', '''content_service''');
    end if;
    execute v_definition;
  end loop;
  for v_name, v_definition in
    select pg_catalog.format('function %s', objoid::pg_catalog.regprocedure), description from pg_catalog.pg_description
    where classoid = 'pg_catalog.pg_proc'::pg_catalog.regclass and description ~ '${PATTERN}'
    union all
    select case objsubid when 0 then pg_catalog.format('table %s', objoid::pg_catalog.regclass) else pg_catalog.format('column %s.%I', objoid::pg_catalog.regclass, attname) end, description
    from pg_catalog.pg_description join pg_catalog.pg_class on pg_class.oid = objoid left join pg_catalog.pg_attribute on attrelid = objoid and attnum = objsubid and objsubid > 0
    where classoid = 'pg_catalog.pg_class'::pg_catalog.regclass and relkind = 'r' and description ~ '${PATTERN}'
  loop
    execute pg_catalog.format('comment on %s is %L', v_name, pg_catalog.regexp_replace(v_definition, '${PATTERN}', '\\1content_service.\\2', 'g'));
  end loop;
  for v_name in select rolname from pg_catalog.pg_roles where rolname in ('anon', 'authenticated', 'service_role') loop
    execute pg_catalog.format('grant usage on schema content_service to %I', v_name);
  end loop;
  comment on schema api is null;
  begin
    drop schema api;
  exception when dependent_objects_still_exist then
    raise notice 'Schema api has objects of the project';
  end;
  perform pg_catalog.set_config('search_path', v_path, true);
end $move$`;

/** Matches a statement that creates a schema `api` of the project. */
const MAKES_SCHEMA = /\bcreate\s+schema\s+(?:if\s+not\s+exists\s+)?(api|"api")(?![\w"$.])/gi;

export function makesApiSchema(sql: string): boolean {
  return [...sql.matchAll(MAKES_SCHEMA)].some(([, name]) => !name!.startsWith('"') || name === '"api"');
}

/** Makes room for a schema `api` of the project before its SQL creates it. */
export async function makeRoomForApiSchema(client: QueryClient, sql: string): Promise<void> {
  if (makesApiSchema(sql)) await moveApiObjects(client);
}

export async function moveApiObjects(client: QueryClient): Promise<void> {
  await client.query(MOVE);
}
