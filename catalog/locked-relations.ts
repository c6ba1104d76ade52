// Postgres prints an expression with a lock on its table, and on the tables of its subqueries. While a migration alters one
// of them, printing waits for the migration. So a reload skips these rows and keeps the texts of the previous catalogue,
// which are those of the version that its snapshot sees.

/** The setting contains the oids of the relations whose expressions must not be printed. If it is unset, all are printed. */
const SETTING = "catalog.locked_relations";

/** Sets the relations on which other sessions hold or await an exclusive lock, and the views above them. */
export const SET_LOCKED_RELATIONS = `
  with recursive locked as (
    select relation as oid from pg_locks
    where locktype = 'relation' and mode = 'AccessExclusiveLock' and pid is distinct from pg_backend_pid()
      and database = (select oid from pg_database where datname = current_database())
    union
    select r.ev_class
    from locked join pg_depend d on d.refclassid = 'pg_class'::regclass and d.refobjid = locked.oid
      join pg_rewrite r on d.classid = 'pg_rewrite'::regclass and r.oid = d.objid
  )
  select set_config('${SETTING}', array(select oid from locked)::text, true)`;

const LOCKED_RELATIONS = `(select coalesce(nullif(current_setting('${SETTING}', true), ''), '{}')::oid[])::oid[]`;

/** Returns an SQL condition. The oid is an SQL expression. */
export const isLocked = (oid: string) => `${oid} = any (${LOCKED_RELATIONS})`;

type Row = Readonly<Record<string, unknown>>;
type SkippableRow = Record<string, unknown> & { locked: boolean };

type PrintedColumns = {
  /** The columns that identify a row. */
  readonly key: readonly string[];
  /** The columns that need a lock, with the values that they have until they are read for the first time. A policy then permits no rows. */
  readonly unknown: Row;
};

/** The printed columns by the subject of the query. Rows of these queries have a column `locked`. */
const PRINTED_COLUMNS: Readonly<Record<string, PrintedColumns>> = {
  tables: { key: ["oid"], unknown: { events: 0, showsOneTable: false } },
  columns: { key: ["table", "position"], unknown: { expression: "null" } },
  policies: { key: ["table", "name"], unknown: { using: "false", check: "false" } },
  indexes: { key: ["oid"], unknown: { predicate: "false" } },
  constraints: { key: ["oid"], unknown: { expression: "false" } },
};

export type PrintedExpressions = ReadonlyMap<string, Row>;

/** Keeps the values of one load that need locks; the values of skipped rows come from the previous load. */
export class ExpressionKeeper {
  readonly #previous: PrintedExpressions;
  readonly #printed = new Map<string, Row>();
  #skipsRows = false;

  constructor(previous: PrintedExpressions) {
    this.#previous = previous;
  }

  get printed(): PrintedExpressions {
    return this.#printed;
  }

  get skipsRows(): boolean {
    return this.#skipsRows;
  }

  /** Completes the rows that were skipped, in place. */
  complete(subject: string, rows: readonly object[]): void {
    const columns = PRINTED_COLUMNS[subject];
    if (!columns) return;
    const names = Object.keys(columns.unknown);
    for (const row of rows as readonly SkippableRow[]) {
      if (!row.locked && names.every((name) => row[name] === null)) continue;
      const key = JSON.stringify([subject, ...columns.key.map((name) => row[name])]);
      if (row.locked) {
        Object.assign(row, this.#previous.get(key) ?? columns.unknown);
        row.locked = false;
        this.#skipsRows = true;
      }
      this.#printed.set(key, Object.fromEntries(names.map((name) => [name, row[name]])));
    }
  }
}
