import { DatabaseError } from "pg";
import type { Row, Statement } from "./statement.ts";

/** Those that keep out who reads. */
const AGAINST_READS = ["AccessExclusiveLock"];
/** Those that keep out who writes. */
const AGAINST_WRITES = [...AGAINST_READS, "ExclusiveLock", "ShareRowExclusiveLock", "ShareLock"];

/** A policy may read other relations, which are none of the caller's business: only what the statement names is looked at. */
const BLOCKING_LOCK = `
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

export type Blocked = { readonly relations: readonly string[]; readonly readOnly: boolean };

/** Asks as the caller, who is not told of what she may not use. */
export function blockingLock({ relations, readOnly }: Blocked): Statement {
  const modes = readOnly ? AGAINST_READS : AGAINST_WRITES;
  return { text: BLOCKING_LOCK, values: [JSON.stringify(relations), JSON.stringify(modes)] };
}

/** Postgres does not say which lock it was. */
export function nameLock(error: DatabaseError, [found]: readonly Row[]): void {
  if (!found) return;
  const [schema, table, mode, granted] = found as readonly string[];
  error.schema = schema;
  error.table = table;
  const does = granted === "t" ? "has locked" : "waits to lock";
  error.detail ??= `Another transaction ${does} relation "${table}" (${mode}).`;
  error.hint ??= "Try again when it has ended.";
}
