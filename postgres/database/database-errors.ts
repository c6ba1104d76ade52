import pg, { type DatabaseError } from "pg";
import { ApiError, unavailable } from "#runtime";
import { quotedName } from "../client/quoted-name.ts";
import type { ResultRow, Statement } from "./statement.ts";

/** SQLSTATE undefined_column, undefined_table and invalid_schema_name. */
const UNDEFINED_OBJECT_CODES: ReadonlySet<string | undefined> = new Set(["42703", "42P01", "3F000"]);

export const SCHEMA_CHANGED_MESSAGE = "The database has just been changed; try again in a moment.";

const RETRY_AFTER_SECONDS = 1;
const REDUCE_RESPONSE_HINT = "Ask for fewer rows, fewer columns or fewer nested lists.";

/** Postgres rejected the role or a setting, before the statement ran. */
export class ContextError extends pg.DatabaseError {}

/** Postgres rejected the statement that was to run before the request's own. */
export class PrecedingStatementError extends pg.DatabaseError {}

/** The error of a group of statements, with the index of the failed one. */
type GroupError = Error & { failedStatement?: number };

export function setFailedStatement(error: GroupError, index: number): void {
  error.failedStatement = index;
}

/** Returns the index of the failed statement of a group; null if no statement failed, but for example a deferred constraint. */
export function failedStatementOf(error: unknown): number | null {
  return error instanceof Error ? ((error as GroupError).failedStatement ?? null) : null;
}

/** Schemas of the service, whose tables hold secrets and personal data. `api`, which projects use too, has one such table. */
const SERVICE_SCHEMAS: ReadonlySet<string | undefined> = new Set(["auth", "content_service"]);
const isServiceTable = ({ schema, table }: Pick<DatabaseError, "schema" | "table">): boolean =>
  SERVICE_SCHEMAS.has(schema) || (schema === "api" && table === "webhooks");

/** SQLSTATE not_null_violation and check_violation; their detail is the whole row: `Failing row contains (…).` */
const ROW_VALUE_CODES: ReadonlySet<string | undefined> = new Set(["23502", "23514"]);

/**
 * Matches an error context with the statement of `on update` or `on delete`, which Postgres runs as the owner of the table. Postgres writes
 * it itself, in any language of messages; without `ONLY` for a partitioned table: `DELETE FROM ONLY "a"."b" WHERE $1 OPERATOR(pg_catalog.=) "c"`.
 */
const FOREIGN_KEY_ACTION =
  /(?:UPDATE|DELETE FROM) (?:ONLY )?"(?:[^"]|"")+"\."(?:[^"]|"")+" (?:SET|WHERE) .*? OPERATOR\(/s;
const INTEGRITY_CLASS = /^23/;

/**
 * Returns the detail of an error that a client may read. Postgres prints the refused row to callers that bypass RLS, including defaults that
 * they may not read, such as a webhook's secret. It prints a row of a foreign key's action to callers that may not read the row.
 */
export function clientDetailOf({ code = "", schema, table, where = "", detail }: DatabaseError): string | null {
  const ofService = ROW_VALUE_CODES.has(code) && isServiceTable({ schema, table });
  const ofOwner = INTEGRITY_CLASS.test(code) && FOREIGN_KEY_ACTION.test(where);
  return ofService || ofOwner ? null : (detail ?? null);
}

/** SQLSTATE classes of a refused value or privilege. With other classes the statement was cancelled, or the server lacks resources. */
const REFUSED_CONTEXT = /^(?:22|42)/;

/** True if Postgres has rejected the caller's role or a setting, and did not only fail to set it now. */
export function isContextRefused({ code = "" }: ContextError): boolean {
  return REFUSED_CONTEXT.test(code);
}

/** True if the role does not exist, or the login is not a member of it. */
export function isRoleRefused({ message }: ContextError): boolean {
  return /^(?:role .* does not exist|permission denied to set role .*)$/s.test(message);
}

/** The message for anonymous callers when no anonymous role is configured. */
export const ANONYMOUS_NOT_SERVED = "Sign in first: callers without credentials are not served here.";

/** PostgREST's code and message for a database that cannot be reached. */
export function databaseUnreachable(cause: unknown): ApiError {
  return new ApiError("unavailable", "PGRST000", "Database connection error. Retrying the connection.", {
    retryAfterSeconds: RETRY_AFTER_SECONDS,
    cause,
  });
}

/** Every server that answers is a standby, as during a failover. */
export function noPrimary(cause: unknown): ApiError {
  const message = "There is no primary database server at the moment; retrying.";
  return new ApiError("unavailable", "PGRST000", message, { retryAfterSeconds: RETRY_AFTER_SECONDS, cause });
}

const ACQUIRE_TIMEOUT_CODE = "PGRST003";

function isAcquireTimeout(error: unknown): error is ApiError {
  return error instanceof ApiError && error.code === ACQUIRE_TIMEOUT_CODE;
}

/** All connections were busy for longer than the acquire timeout. */
export function acquireTimeout(): ApiError {
  return new ApiError("timeout", ACQUIRE_TIMEOUT_CODE, "Timed out acquiring connection from connection pool.", {
    retryAfterSeconds: RETRY_AFTER_SECONDS,
  });
}

export function shuttingDown(): ApiError {
  return unavailable("The service is shutting down.");
}

/** Nothing was changed, so a retry is safe. */
export function connectionLost(cause: unknown): ApiError {
  return unavailable("The database connection was lost. Nothing was changed; try again.", cause);
}

/** SQLSTATE transaction_resolution_unknown. */
const OUTCOME_UNKNOWN = "08007";

export function outcomeUnknown(cause: unknown): ApiError {
  const message = "The database connection was lost, and the change may have been made. Look before you try again.";
  return new ApiError("unavailable", OUTCOME_UNKNOWN, message, {
    hint: "With an Idempotency-Key from the beginning it is made once, however often it is tried.",
    retryAfterSeconds: RETRY_AFTER_SECONDS,
    cause,
  });
}

export function isOutcomeUnknown(error: unknown): boolean {
  return error instanceof ApiError && error.code === OUTCOME_UNKNOWN;
}

/** True for SQLSTATE query_canceled: by statement_timeout or by a cancel request. */
export function isQueryCanceled(error: unknown): boolean {
  return error instanceof pg.DatabaseError && error.code === "57014";
}

/** The error for reads and rolled-back statements: nothing was committed. */
export function responseTooLarge(limit: number, hint = REDUCE_RESPONSE_HINT): ApiError {
  return new ApiError("invalid", "ANSWER_TOO_LARGE", `The answer would be larger than ${limit} bytes.`, {
    details: "Nothing was changed.",
    hint,
  });
}

/** The change was committed before its response was received. */
export function changedButResponseTooLarge(): ApiError {
  return new ApiError("invalid", "ANSWER_TOO_LARGE", "The change was made, but its response is too large to be sent.", {
    hint: "Do not repeat it: read what you need of it.",
  });
}

export function isResponseTooLarge(error: unknown): boolean {
  return error instanceof ApiError && error.code === "ANSWER_TOO_LARGE";
}

/** Each response is within its limit, but their sum exceeds the total limit. */
export function tooManyLargeResponses(): ApiError {
  return unavailable("Too many large answers are being made at once; try again shortly.");
}

/** SQLSTATE class 25 is invalid_transaction_state. The session would run its next statements in the wrong transaction. */
export function unexpectedTransactionState(): ApiError {
  return new ApiError(
    "internal",
    "25000",
    "A statement may not begin or end a transaction; its connection was closed.",
  );
}

/** A client that does not read occupies a connection and prevents vacuum from removing old rows. */
export function readerStalled(): ApiError {
  return new ApiError("timeout", "57014", "The rows were not read for too long; the query was cancelled.");
}

/** SQLSTATE 25P02 is in_failed_sql_transaction. */
export function transactionFailed(): ApiError {
  return new ApiError("internal", "25P02", "The transaction had failed and was rolled back.");
}

/** True if a concurrent transaction prevents this one, so that a retry may succeed. */
export function isSerializationFailure(error: unknown): boolean {
  return error instanceof pg.DatabaseError && error.code === "40001";
}

/**
 * True if a statement refers to an object that no longer exists: it was built from an outdated catalogue. Errors inside
 * functions have a `where`, and a value that is cast to a name has no position, so neither counts.
 */
export function isSchemaOutdated(error: unknown): boolean {
  if (!(error instanceof pg.DatabaseError) || error.where || error.position === undefined) return false;
  const isFunctionGone = error.code === "42883" && error.routine === "ParseFuncOrColumn";
  return isFunctionGone || UNDEFINED_OBJECT_CODES.has(error.code);
}

/** Exceeds the usual DB_LOCK_TIMEOUT_SECONDS, within which a statement that waits for the lock renews the entry. */
const LOCK_MEMORY_MS = 10_000;
const MAX_LOCKS = 1_000;

/** Lock modes that conflict with reads. */
const LOCKS_AGAINST_READS = ["AccessExclusiveLock"];
/** Lock modes that conflict with writes. */
const LOCKS_AGAINST_WRITES = [...LOCKS_AGAINST_READS, "ExclusiveLock", "ShareRowExclusiveLock", "ShareLock"];

/** The query considers only relations that the statement names and the caller may access; policies may read other relations. */
const FIND_BLOCKING_LOCK = `
  select namespace.nspname, class.relname, lock.mode, lock.granted
    from pg_catalog.json_array_elements_text($1) as named(relation)
    join pg_catalog.pg_class as class on class.oid = pg_catalog.to_regclass(named.relation)
    join pg_catalog.pg_namespace as namespace on namespace.oid = class.relnamespace
    join pg_catalog.pg_locks as lock on lock.locktype = 'relation' and lock.relation = class.oid
    join pg_catalog.pg_database as database on database.oid = lock.database
   where database.datname = pg_catalog.current_database()
     and lock.mode in (select pg_catalog.json_array_elements_text($2))
     and lock.pid <> pg_catalog.pg_backend_pid()
     and (pg_catalog.has_any_column_privilege(class.oid, 'select, insert, update, references')
          or pg_catalog.has_table_privilege(class.oid, 'delete'))
   order by lock.granted desc
   limit 1`;

export type BlockedStatement = { readonly relations: readonly string[]; readonly readOnly: boolean };

/** Finds the blocking lock as the caller, so that it reveals no relation without privileges. */
export function findBlockingLock({ relations, readOnly }: BlockedStatement): Statement {
  const modes = readOnly ? LOCKS_AGAINST_READS : LOCKS_AGAINST_WRITES;
  return { text: FIND_BLOCKING_LOCK, values: [JSON.stringify(relations), JSON.stringify(modes)] };
}

/** Adds the relation and the lock mode to a lock timeout: Postgres does not report them. */
export function describeLock(error: DatabaseError, [found]: readonly ResultRow[]): void {
  if (!found) return;
  const [schema, table, mode, granted] = found as readonly string[];
  error.schema = schema;
  error.table = table;
  const does = granted === "t" ? "has locked" : "waits to lock";
  error.detail ??= `Another transaction ${does} relation "${table}" (${mode}).`;
  error.hint ??= "Try again when it has ended.";
}

type LockDescription = {
  readonly table: string;
  readonly detail: string;
  readonly hint: string;
  readonly until: number;
};

/** Locks that recent statements timed out on. They explain the timeouts of statements that wait for a connection behind them. */
export class RecentLockTimeouts {
  /** The locks by role and relation, since privileges differ by role. */
  readonly #known = new Map<string, LockDescription>();

  remember(role: string, { schema, table, detail, hint }: DatabaseError): void {
    if (!schema || !table || !detail || !hint) return;
    if (this.#known.size >= MAX_LOCKS) this.#known.clear();
    this.#known.set(lockKey(role, quotedName(schema, table)), {
      table,
      detail,
      hint,
      until: performance.now() + LOCK_MEMORY_MS,
    });
  }

  /** Adds the lock to the error of a statement that got no connection, if its relation is known to be locked. */
  explain(error: unknown, role: string, relations: readonly string[]): unknown {
    if (this.#known.size === 0 || !isAcquireTimeout(error)) return error;
    const lock = relations.map((relation) => this.#find(lockKey(role, relation))).find((found) => found !== null);
    if (!lock) return error;
    const { kind, code, retryAfterSeconds } = error;
    const message = `"${lock.table}" is locked by another transaction; try again.`;
    const { detail: details, hint } = lock;
    return new ApiError(kind, code, message, { details, hint, retryAfterSeconds });
  }

  #find(key: string): LockDescription | null {
    const lock = this.#known.get(key);
    if (lock && lock.until > performance.now()) return lock;
    this.#known.delete(key);
    return null;
  }
}

function lockKey(role: string, relation: string): string {
  return `${role} ${relation}`;
}
