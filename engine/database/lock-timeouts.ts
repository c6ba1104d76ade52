import { DatabaseError } from "pg";
import { ApiError } from "../errors.ts";
import { quotedName } from "../pg-client/quoted-name.ts";
import { isAcquireTimeout } from "./database-errors.ts";
import type { ResultRow, Statement } from "./statement.ts";

/** Longer than DB_LOCK_TIMEOUT_SECONDS usually is, within which a statement that waits for the lock itself renews the entry. */
const LOCK_MEMORY_MS = 10_000;
const MAX_LOCKS = 1_000;

/** Lock modes that conflict with reads. */
const LOCKS_AGAINST_READS = ["AccessExclusiveLock"];
/** Lock modes that conflict with writes. */
const LOCKS_AGAINST_WRITES = [...LOCKS_AGAINST_READS, "ExclusiveLock", "ShareRowExclusiveLock", "ShareLock"];

/** Considers only relations that the statement names and the caller may access: policies may read others. */
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

/** SQLSTATE lock_not_available. */
export function isLockTimeout(error: unknown): error is DatabaseError {
  return error instanceof DatabaseError && error.code === "55P03";
}

export type BlockedStatement = { readonly relations: readonly string[]; readonly readOnly: boolean };

/** Runs as the caller, so that it reveals no relation without privileges. */
export function findBlockingLock({ relations, readOnly }: BlockedStatement): Statement {
  const modes = readOnly ? LOCKS_AGAINST_READS : LOCKS_AGAINST_WRITES;
  return { text: FIND_BLOCKING_LOCK, values: [JSON.stringify(relations), JSON.stringify(modes)] };
}

/** Adds the relation and the mode to a lock timeout, which Postgres does not report. */
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

/** Locks that recent statements timed out on, to explain the timeouts of statements that wait for a connection behind them. */
export class RecentLockTimeouts {
  /** By role, since privileges differ, and by relation. */
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
    const { kind, code, message: tableMessage, retryAfterSeconds } = error;
    const message = `"${lock.table}" is locked by another transaction; try again.`;
    const { detail: details, hint } = lock;
    return new ApiError(kind, code, message, { tableMessage, details, hint, retryAfterSeconds });
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
