import type pg from "pg";
import { type BlockedWork, strongestBlockingMode } from "./lock-modes.ts";
import { withoutStrings } from "./split-statements.ts";
import { runWithoutRows } from "./sql-transaction.ts";

/** A lock on a relation that others wait for. */
type ObservedLock = {
  readonly relation: string;
  readonly mode: string;
  readonly blocks: BlockedWork;
  /** By an earlier statement of the transaction, which holds it until its end. */
  readonly isEarlier: boolean;
};

type RowCount = { readonly relation: string; readonly rows: number };

export type StatementMeasures = {
  /** The strongest lock on each relation that was there before the transaction. */
  readonly locks: readonly ObservedLock[];
  readonly rewritten: readonly RowCount[];
  readonly scanned: readonly RowCount[];
  readonly inserted: number;
  readonly changed: number;
  /** Of the whole server. */
  readonly walBytes: number;
  readonly milliseconds: number;
};

export const NO_MEASURES: StatementMeasures = {
  locks: [],
  rewritten: [],
  scanned: [],
  inserted: 0,
  changed: 0,
  walBytes: 0,
  milliseconds: 0,
};

/** The number of rows in the database that the copy was made of, by the qualified name of the table. */
export type RowEstimates = (relation: string) => number;

type RelationState = {
  readonly oid: number;
  readonly name: string;
  readonly kind: string;
  /** Another one when the relation is rewritten. */
  readonly file: number;
  readonly bytes: number;
  readonly scans: number;
  readonly read: number;
  readonly inserted: number;
  readonly changed: number;
  readonly modes: readonly string[];
};

export type RelationStates = ReadonlyMap<number, RelationState>;

/** Fewer are lookups of single rows. */
const MANY_INDEX_ENTRIES = 1000;

/** The counters are of the open transaction. */
const RELATIONS = `
  select class.oid::pg_catalog.int8::pg_catalog.float8 as oid, namespace.nspname || '.' || class.relname as name, relkind as kind,
    coalesce(pg_catalog.pg_relation_filenode(class.oid), 0)::pg_catalog.int8::pg_catalog.float8 as file,
    coalesce(case when relkind in ('r', 'm') then pg_catalog.pg_relation_size(class.oid) end, 0)::pg_catalog.float8 as bytes,
    pg_catalog.pg_stat_get_xact_numscans(class.oid)::pg_catalog.float8 as scans,
    pg_catalog.pg_stat_get_xact_tuples_returned(class.oid)::pg_catalog.float8 as read,
    pg_catalog.pg_stat_get_xact_tuples_inserted(class.oid)::pg_catalog.float8 as inserted,
    (pg_catalog.pg_stat_get_xact_tuples_updated(class.oid) + pg_catalog.pg_stat_get_xact_tuples_deleted(class.oid))::pg_catalog.float8 as changed,
    coalesce(held.modes, '{}') as modes
  from pg_catalog.pg_class as class join pg_catalog.pg_namespace as namespace on namespace.oid = relnamespace
  left join (
    select relation, pg_catalog.array_agg(mode) as modes from pg_catalog.pg_locks
    where pid = pg_catalog.pg_backend_pid() and locktype = 'relation' and granted group by relation
  ) as held on held.relation = class.oid
  where class.oid >= 16384 and relkind in ('r', 'p', 'm', 'v', 'S', 'i', 'I', 'f') and nspname <> 'pg_toast'`;

/** Parallel workers would count for themselves. */
const MEASURABLE =
  "select pg_catalog.set_config('max_parallel_maintenance_workers', '0', false), pg_catalog.set_config('max_parallel_workers_per_gather', '0', false)";

export async function prepareMeasuring(client: pg.ClientBase): Promise<void> {
  await client.query(MEASURABLE);
}

export async function readRelations(client: pg.ClientBase): Promise<RelationStates> {
  const { rows } = await client.query<RelationState>(RELATIONS);
  return new Map(rows.map((relation) => [relation.oid, relation]));
}

/** What a table has, as Postgres estimates. */
export async function readRowEstimates(client: pg.ClientBase): Promise<RowEstimates> {
  const { rows } = await client.query<{ name: string; rows: number }>(
    `select nspname || '.' || relname as name, (case when reltuples < 0 then pg_catalog.pg_relation_size(class.oid) / 100 else reltuples end)::pg_catalog.float8 as rows
     from pg_catalog.pg_class as class join pg_catalog.pg_namespace as namespace on namespace.oid = relnamespace where relkind in ('r', 'm')`,
  );
  const counts = new Map(rows.map(({ name, rows: count }) => [name, count]));
  return (relation) => counts.get(relation) ?? 0;
}

/** Where the transaction began, and where it is before the statement. */
type MeasureStart = { readonly begun: RelationStates; readonly before: RelationStates };

/** Runs the statement in the open transaction. */
export async function measureStatement(
  client: pg.ClientBase,
  sql: string,
  { begun, before }: MeasureStart,
  estimates: RowEstimates,
): Promise<{ readonly measures: StatementMeasures; readonly after: RelationStates }> {
  const position = await walPosition(client);
  const start = performance.now();
  await runWithoutRows(client, sql);
  const milliseconds = Math.round(performance.now() - start);
  const walBytes = (await walPosition(client)) - position;
  const after = await readRelations(client);
  const measures = { ...compareStates({ sql, begun, before, after }, estimates), walBytes, milliseconds };
  return { measures, after };
}

async function walPosition(client: pg.ClientBase): Promise<number> {
  const { rows } = await client.query<{ bytes: number }>(
    "select pg_catalog.pg_wal_lsn_diff(pg_catalog.pg_current_wal_insert_lsn(), '0/0')::pg_catalog.float8 as bytes",
  );
  return rows[0]!.bytes;
}

type StateComparison = MeasureStart & { readonly sql: string; readonly after: RelationStates };

const CHANGES_ROWS = /^(with\b.*(?<!\bfor\s+(no\s+key\s+)?)\b)?(update|delete|merge)\b/is;

export function compareStates(
  { sql, begun, before, after }: StateComparison,
  estimates: RowEstimates,
): Omit<StatementMeasures, "walBytes" | "milliseconds"> {
  const rewritten: RowCount[] = [];
  const scanned: RowCount[] = [];
  let inserted = 0;
  let changed = 0;
  for (const [oid, now] of after) {
    const was = before.get(oid);
    inserted += now.inserted - (was?.inserted ?? 0);
    changed += now.changed - (was?.changed ?? 0);
    if (!was || !begun.has(oid)) continue;
    const read = now.read - was.read;
    const isTable = /^[rpm]$/.test(now.kind);
    const estimate = estimates(now.name);
    if (isTable && now.scans > was.scans) {
      scanned.push({ relation: now.name, rows: was.bytes > 0 ? read : Math.max(read, estimate) });
      // In a copy without rows it may change as many as it reads.
      if (was.bytes === 0 && CHANGES_ROWS.test(withoutStrings(sql))) changed += estimate;
    }
    if (now.kind === "i" && read >= MANY_INDEX_ENTRIES) scanned.push({ relation: now.name, rows: read });
    if (isTable && now.file !== was.file) rewritten.push({ relation: now.name, rows: Math.max(read, estimate) });
  }
  return { locks: readLocks({ begun, before, after }), rewritten, scanned, inserted, changed };
}

/** A relation that the statement drops is not there afterwards: Postgres holds its lock, and nobody can find it before the end. */
function readLocks({ begun, before, after }: Omit<StateComparison, "sql">): ObservedLock[] {
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
