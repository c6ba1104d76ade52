import type pg from "pg";
import { mayReadRange } from "./index-ranges.ts";
import { type BlockedWork, strongestBlockingMode } from "./lock-modes.ts";

/** A lock on a relation that others wait for. */
type ObservedLock = {
  readonly relation: string;
  readonly mode: string;
  readonly blocks: BlockedWork;
  /** True if an earlier statement of the transaction has taken the lock, which it holds until its end. */
  readonly isEarlier: boolean;
};

type RowCount = { readonly relation: string; readonly rows: number };

/** Rows from before the transaction that others cannot write until its end. */
type LockedRows = RowCount & {
  /** True if an earlier statement of the transaction already holds some of them. */
  readonly isEarlier: boolean;
};

export type StatementMeasures = {
  /** The strongest lock on each relation that was there before the transaction. */
  readonly locks: readonly ObservedLock[];
  /** The locked rows of tables on which the transaction has no lock that stops all writes. */
  readonly lockedRows: readonly LockedRows[];
  /** The rewritten relations, also new ones of the transaction: others wait for its locks meanwhile. */
  readonly rewritten: readonly RowCount[];
  readonly scanned: readonly RowCount[];
  readonly inserted: number;
  readonly changed: number;
  /** The WAL of the whole server. */
  readonly walBytes: number;
  readonly milliseconds: number;
};

export const NO_MEASURES: StatementMeasures = {
  locks: [],
  lockedRows: [],
  rewritten: [],
  scanned: [],
  inserted: 0,
  changed: 0,
  walBytes: 0,
  milliseconds: 0,
};

/** The number of rows in the database that the copy was made of, by the qualified name of the table. */
export type RowEstimates = (relation: string) => number;

export type RelationState = {
  readonly oid: number;
  readonly name: string;
  readonly kind: string;
  /** The table of an index; else 0. */
  readonly table: number;
  /** True for a unique index of one column. */
  readonly isKey: boolean;
  /** The file's number, which changes when the relation is rewritten. */
  readonly file: number;
  readonly bytes: number;
  readonly scans: number;
  readonly read: number;
  /** The rows that an index has led to. */
  readonly fetched: number;
  readonly inserted: number;
  readonly changed: number;
  /** The blocks read, also by lookups that count no scan, such as one by `ctid`. */
  readonly readBlocks: number;
  readonly modes: readonly string[];
};

export type RelationStates = ReadonlyMap<number, RelationState>;

/** Fewer entries are lookups of single rows. */
const MANY_INDEX_ENTRIES = 1000;

/** The counters are of the open transaction. */
const RELATIONS = `
  select class.oid::pg_catalog.int8::pg_catalog.float8 as oid, namespace.nspname || '.' || class.relname as name, relkind as kind,
    coalesce(indrelid, 0)::pg_catalog.int8::pg_catalog.float8 as table, coalesce(indisunique and indnkeyatts = 1, false) as "isKey",
    coalesce(pg_catalog.pg_relation_filenode(class.oid), 0)::pg_catalog.int8::pg_catalog.float8 as file,
    coalesce(case when relkind in ('r', 'm') then pg_catalog.pg_relation_size(class.oid) end, 0)::pg_catalog.float8 as bytes,
    pg_catalog.pg_stat_get_xact_numscans(class.oid)::pg_catalog.float8 as scans,
    pg_catalog.pg_stat_get_xact_tuples_returned(class.oid)::pg_catalog.float8 as read,
    pg_catalog.pg_stat_get_xact_tuples_fetched(class.oid)::pg_catalog.float8 as fetched,
    pg_catalog.pg_stat_get_xact_tuples_inserted(class.oid)::pg_catalog.float8 as inserted,
    (pg_catalog.pg_stat_get_xact_tuples_updated(class.oid) + pg_catalog.pg_stat_get_xact_tuples_deleted(class.oid))::pg_catalog.float8 as changed,
    pg_catalog.pg_stat_get_xact_blocks_fetched(class.oid)::pg_catalog.float8 as "readBlocks",
    coalesce(held.modes, '{}') as modes
  from pg_catalog.pg_class as class join pg_catalog.pg_namespace as namespace on namespace.oid = relnamespace
  left join pg_catalog.pg_index as index on index.indexrelid = class.oid
  left join (
    select relation, pg_catalog.array_agg(mode) as modes from pg_catalog.pg_locks
    where pid = pg_catalog.pg_backend_pid() and locktype = 'relation' and granted group by relation
  ) as held on held.relation = class.oid
  where class.oid >= 16384 and relkind in ('r', 'p', 'm', 'v', 'S', 'i', 'I', 'f') and nspname <> 'pg_toast'`;

/** Parallel workers are disabled, since they would keep their own counters. */
const MEASURABLE =
  "select pg_catalog.set_config('max_parallel_maintenance_workers', '0', false), pg_catalog.set_config('max_parallel_workers_per_gather', '0', false)";

export async function prepareMeasuring(client: pg.ClientBase): Promise<void> {
  await client.query(MEASURABLE);
}

export async function readRelations(client: pg.ClientBase): Promise<RelationStates> {
  const { rows } = await client.query<RelationState>(RELATIONS);
  return new Map(rows.map((relation) => [relation.oid, relation]));
}

/** Returns the number of rows of each table, as Postgres estimates it. */
export async function readRowEstimates(client: pg.ClientBase): Promise<RowEstimates> {
  const { rows } = await client.query<{ name: string; rows: number }>(
    `select nspname || '.' || relname as name, (case when reltuples < 0 then pg_catalog.pg_relation_size(class.oid) / 100 else reltuples end)::pg_catalog.float8 as rows
     from pg_catalog.pg_class as class join pg_catalog.pg_namespace as namespace on namespace.oid = relnamespace where relkind in ('r', 'm')`,
  );
  const counts = new Map(rows.map(({ name, rows: count }) => [name, count]));
  return (relation) => counts.get(relation) ?? 0;
}

/** The relations at the start of the transaction, before a statement and after it. */
export type MeasuredStates = {
  readonly sql: string;
  readonly begun: RelationStates;
  readonly before: RelationStates;
  readonly after: RelationStates;
};

export type StatementStates = MeasuredStates & {
  /** The texts of the statement and of the code that it may run; read only if row locks are assumed. */
  readonly texts: readonly string[];
};

/** WAL and time that the work takes. */
export async function measureCosts(
  client: pg.ClientBase,
  work: () => Promise<void>,
): Promise<Pick<StatementMeasures, "walBytes" | "milliseconds">> {
  const position = await walPosition(client);
  const start = performance.now();
  await work();
  const milliseconds = Math.round(performance.now() - start);
  return { walBytes: (await walPosition(client)) - position, milliseconds };
}

async function walPosition(client: pg.ClientBase): Promise<number> {
  const { rows } = await client.query<{ bytes: number }>(
    "select pg_catalog.pg_wal_lsn_diff(pg_catalog.pg_current_wal_insert_lsn(), '0/0')::pg_catalog.float8 as bytes",
  );
  return rows[0]!.bytes;
}

/** The known numbers of rows in the database where the statements are to run. */
export type RowCounts = {
  /** False in a copy without rows. */
  readonly hasRows: boolean;
  readonly estimate: (relation: RelationState) => number;
};

type ComparedMeasures = Omit<StatementMeasures, "lockedRows" | "walBytes" | "milliseconds">;

export function compareStates(states: StatementStates, { hasRows, estimate }: RowCounts): ComparedMeasures {
  const { before, after, texts } = states;
  const rewritten: RowCount[] = [];
  const scanned: RowCount[] = [];
  let inserted = 0;
  let changed = 0;
  for (const [oid, now] of after) {
    const was = before.get(oid);
    inserted += now.inserted - (was?.inserted ?? 0);
    changed += now.changed - (was?.changed ?? 0);
    const read = now.read - (was?.read ?? 0);
    const isTable = isTableKind(now.kind);
    if (isTable && now.scans > (was?.scans ?? 0)) {
      const isCounted = hasRows && was?.bytes !== 0;
      scanned.push({ relation: now.name, rows: isCounted ? read : Math.max(read, estimate(now)) });
    }
    if (now.kind === "i") {
      const table = after.get(now.table);
      const isRange = !hasRows && table && now.scans > (was?.scans ?? 0) && mayReadRange(texts, now);
      const rows = isRange ? Math.max(read, estimate(table)) : read;
      if (rows >= MANY_INDEX_ENTRIES) scanned.push({ relation: now.name, rows });
    }
    if (isTable && was && now.file !== was.file) {
      rewritten.push({ relation: now.name, rows: Math.max(read, estimate(now)) });
    }
  }
  return { locks: readLocks(states), rewritten, scanned, inserted, changed };
}

/** True for a relation with rows of its own, or of its partitions. */
function isTableKind(kind: string): boolean {
  return /^[rpm]$/.test(kind);
}

/** Leaves out a relation that the statement drops: Postgres holds its lock, but nobody can find the relation before the end. */
function readLocks({ begun, before, after }: Omit<MeasuredStates, "sql">): ObservedLock[] {
  return [...begun.values()].flatMap(({ oid, name, kind }): ObservedLock[] => {
    const earlier = before.get(oid);
    const now = after.get(oid);
    const modes = now ? now.modes : ["AccessExclusiveLock"];
    const strongest = strongestBlockingMode(modes);
    // Nobody but `refresh` writes to a materialized view.
    if (!strongest || (kind === "m" && strongest.blocks === "writes")) return [];
    return [{ relation: name, ...strongest, isEarlier: !earlier || earlier.modes.includes(strongest.mode) }];
  });
}
