import type pg from "pg";
import type {
  Cancellation,
  ConnectionCount,
  DatabaseActivity,
  DatabaseSession,
  StatementStatistics,
} from "#operations/admin-types";
import { quotedName } from "#postgres/client";
import { type AsOwner, inOwnerTransaction } from "#postgres/database";
import { ApiError } from "#runtime";

const MAX_SESSIONS = 200;
const MAX_STATEMENT_LENGTH = 4_000;
/** Limits an operator's query, so that it does not become a slow statement itself. */
const LIMIT_TIME = "set local statement_timeout = '5s'";

const READ_LIMITS = `
  select pg_catalog.current_setting('max_connections')::integer as max_connections,
    pg_catalog.pg_has_role(current_user, 'pg_read_all_stats', 'usage') as sees_all`;
const COUNT_CONNECTIONS = `
  select coalesce(nullif(application_name, ''), backend_type, '') as application, state, pg_catalog.count(*)::integer as count
  from pg_catalog.pg_stat_activity where datname = pg_catalog.current_database() group by 1, 2 order by 3 desc, 1, 2`;
/** pg_blocking_pids locks the lock manager, so it is called for waiting sessions only. */
const LIST_SESSIONS = `
  with waiting as materialized (
    select pid, pg_catalog.pg_blocking_pids(pid) as waits_for from pg_catalog.pg_stat_activity
    where wait_event_type = 'Lock' and datname = pg_catalog.current_database()
  )
  select activity.pid, coalesce(nullif(application_name, ''), backend_type, '') as application, usename as role,
    coalesce(state, '') as state, wait_event_type || ': ' || wait_event as wait, pg_catalog.to_jsonb(query_start) #>> '{}' as started_at,
    greatest(0, extract(epoch from pg_catalog.clock_timestamp() - query_start) * 1000)::pg_catalog.float8 as milliseconds,
    greatest(0, extract(epoch from pg_catalog.clock_timestamp() - xact_start) * 1000)::pg_catalog.float8 as transaction_ms,
    case when query not in ('', '<insufficient privilege>') then pg_catalog.left(query, ${MAX_STATEMENT_LENGTH}) end as statement,
    coalesce(waits_for, '{}') as waits_for,
    (
      select pg_catalog.jsonb_build_object('type', locktype, 'mode', mode, 'relation', relation::pg_catalog.regclass::pg_catalog.text)
      from pg_catalog.pg_locks where pg_locks.pid = activity.pid and not granted limit 1
    ) as lock
  from pg_catalog.pg_stat_activity as activity left join waiting using (pid)
  where datname = pg_catalog.current_database() and activity.pid <> pg_catalog.pg_backend_pid()
    and (state <> 'idle' and backend_type is distinct from 'walsender' or waits_for is not null or activity.pid in (select pg_catalog.unnest(waiting.waits_for) from waiting))
  order by waits_for is null, query_start, pid limit ${MAX_SESSIONS}`;

/** Reads the activity of the sessions of this database, and the locks that they wait for. */
export function readDatabaseActivity(asOwner: AsOwner): Promise<DatabaseActivity> {
  return inShortTransaction(asOwner, async (client) => {
    const { rows: limits } = await client.query<Pick<DatabaseActivity, "max_connections" | "sees_all">>(READ_LIMITS);
    const { rows: connections } = await client.query<ConnectionCount>(COUNT_CONNECTIONS);
    const { rows: sessions } = await client.query<DatabaseSession>(LIST_SESSIONS);
    return { ...limits[0]!, connections, sessions };
  });
}

const FIND_EXTENSION = `
  select nspname as schema from pg_catalog.pg_extension join pg_catalog.pg_namespace on pg_namespace.oid = extnamespace
  where extname = 'pg_stat_statements'`;
const MAX_STATEMENTS = 20;

/** Reads the statements that took most time from pg_stat_statements; null if the extension is missing or not loaded. */
export async function readStatementStatistics(asOwner: AsOwner): Promise<readonly StatementStatistics[] | null> {
  const work = async (client: pg.ClientBase) => {
    const { rows } = await client.query<{ schema: string }>(FIND_EXTENSION);
    if (!rows[0]) return null;
    const view = quotedName(rows[0].schema, "pg_stat_statements");
    const statistics = await client.query<StatementStatistics>(`
      select case when query <> '<insufficient privilege>' then pg_catalog.left(query, ${MAX_STATEMENT_LENGTH}) end as statement,
        pg_catalog.pg_get_userbyid(userid) as role, calls::pg_catalog.float8, total_exec_time as total_ms, mean_exec_time as mean_ms,
        max_exec_time as max_ms, rows::pg_catalog.float8
      from ${view} where dbid = (select oid from pg_catalog.pg_database where datname = pg_catalog.current_database())
      order by total_exec_time desc limit ${MAX_STATEMENTS}`);
    return statistics.rows;
  };
  // The extension fails if it is not in shared_preload_libraries.
  return inShortTransaction(asOwner, work).catch(() => null);
}

/** The statement of a session; with `startedAt`, only if it began at that time. */
type StatementToCancel = { readonly pid: number; readonly startedAt: string | null };

type CancelledStatement = Omit<Cancellation, "message">;

const FIND_STATEMENT = `
  select pid, application_name as application, usename as role, state, pg_catalog.to_jsonb(query_start) #>> '{}' as started_at,
    greatest(0, extract(epoch from pg_catalog.clock_timestamp() - query_start) * 1000)::pg_catalog.float8 as milliseconds,
    case when query not in ('', '<insufficient privilege>') then pg_catalog.left(query, ${MAX_STATEMENT_LENGTH}) end as statement,
    ($2::pg_catalog.timestamptz is null or query_start = $2) as "isMeant"
  from pg_catalog.pg_stat_activity
  where pid = $1 and datname = pg_catalog.current_database() and pid <> pg_catalog.pg_backend_pid()
    and coalesce(backend_type, 'client backend') = 'client backend'`;
const CANCEL_STATEMENT = `
  select pg_catalog.pg_cancel_backend(pid) as "isCancelled" from pg_catalog.pg_stat_activity
  where pid = $1 and query_start = $2 and state = 'active' and datname = pg_catalog.current_database()`;
const INSUFFICIENT_PRIVILEGE = "42501";

type FoundStatement = CancelledStatement & { readonly state: string | null; readonly isMeant: boolean };

/** Asks Postgres to cancel a statement of this database. Calls `beforehand` when it has found the statement. */
export async function cancelStatement(
  asOwner: AsOwner,
  { pid, startedAt }: StatementToCancel,
  beforehand: (statement: CancelledStatement) => Promise<void>,
): Promise<CancelledStatement> {
  const found = await asOwner((client) => client.query<FoundStatement>(FIND_STATEMENT, [pid, startedAt]));
  const { state, isMeant, ...statement } = found.rows[0] ?? throwNoSession();
  if (state === null) throw mayNotSee();
  if (state !== "active") throw notRunning(pid, state);
  if (!isMeant) throw hasEnded();
  await beforehand(statement);
  const { rows } = await asOwner((client) =>
    client.query<{ isCancelled: boolean }>(CANCEL_STATEMENT, [pid, statement.started_at]),
  ).catch(explainRefusal);
  if (!rows[0]?.isCancelled) throw hasEnded();
  return statement;
}

function throwNoSession(): never {
  throw new ApiError("notFound", "RESOURCE_NOT_FOUND", "This database has no session of that process id.");
}

function mayNotSee(): ApiError {
  return new ApiError("forbidden", "PERMISSION_DENIED", "The database owner may not read what this session does.", {
    hint: "As a superuser, grant it: grant pg_read_all_stats, pg_signal_backend to <owner>;",
  });
}

function notRunning(pid: number, state: string): ApiError {
  return new ApiError("conflict", "STATEMENT_ENDED", `The session runs no statement; its state is "${state}".`, {
    hint: `To end the whole session, run as the owner: select pg_catalog.pg_terminate_backend(${pid});`,
  });
}

function hasEnded(): ApiError {
  return new ApiError("conflict", "STATEMENT_ENDED", "The statement has ended meanwhile.");
}

function explainRefusal(error: unknown): never {
  if ((error as { readonly code?: unknown }).code !== INSUFFICIENT_PRIVILEGE) throw error;
  throw new ApiError("forbidden", "PERMISSION_DENIED", "The database owner may not cancel statements of this role.", {
    hint: "As a superuser, grant it: grant pg_signal_backend to <owner>;",
    cause: error,
  });
}

function inShortTransaction<T>(asOwner: AsOwner, work: (client: pg.ClientBase) => Promise<T>): Promise<T> {
  return inOwnerTransaction(asOwner, async (client) => {
    await client.query(LIMIT_TIME);
    return work(client);
  });
}
