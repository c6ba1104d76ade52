import type pg from "pg";
import { withClient } from "#postgres/client";
import { type Backfill, readDeclaredBackfills } from "./backfill-batch.ts";

/** The advisory lock of the one session that fills at a time; likewise only one migrates. */
export const BACKFILL_LOCK = 7_446_310;

/** The progress of a backfill, as its session has recorded it. */
type BackfillProgress = {
  /** The rows read in the running pass over the table. */
  readonly read: number;
  readonly filled: number;
  /** The rows read per second since the record before. */
  readonly rowsPerSecond: number;
  /** The share of the time in which batches run, in percent. */
  readonly load: number;
  /** The reason why it does not continue now. */
  readonly waitsFor: string | null;
  /** The reason why it has ended. */
  readonly error: string | null;
  readonly startedAt: Date;
  readonly updatedAt: Date;
};

/** A declared backfill that is not complete. */
export type ListedBackfill = Pick<Backfill, "id" | "table" | "column" | "estimatedRows"> & {
  readonly state: "not started" | "running" | "paused" | "stopped";
  readonly progress: BackfillProgress | null;
};

const CREATE_RECORD = `
  create schema if not exists graphile_migrate;
  create table if not exists graphile_migrate.backfills (
    id              oid primary key,
    pid             int not null,
    load            int not null,
    read            bigint not null default 0,
    filled          bigint not null default 0,
    rows_per_second float8 not null default 0,
    waits_for       text,
    error           text,
    is_paused       boolean not null default false,
    started_at      timestamptz not null default pg_catalog.now(),
    updated_at      timestamptz not null default pg_catalog.now()
  );
  comment on table graphile_migrate.backfills is e'@sample none\\n@anonymize empty\\nBackfills that are not complete. Errors name values.'`;

const hasRecord = async (client: pg.ClientBase) =>
  (await client.query("select where pg_catalog.to_regclass('graphile_migrate.backfills') is not null")).rowCount === 1;

/** Records the start, which ends a pause. Also removes the records of constraints that are gone. */
export async function recordStart(client: pg.ClientBase, { id }: Backfill, load: number): Promise<void> {
  if (!(await hasRecord(client))) await client.query(CREATE_RECORD);
  await client.query(
    "delete from graphile_migrate.backfills as known where id = $1 or not exists (select from pg_catalog.pg_constraint where oid = known.id)",
    [id],
  );
  await client.query(
    "insert into graphile_migrate.backfills (id, pid, load) values ($1, pg_catalog.pg_backend_pid(), $2)",
    [id, load],
  );
}

type RecordedStep = Pick<BackfillProgress, "read" | "filled" | "rowsPerSecond" | "waitsFor">;

export async function recordStep(
  client: pg.ClientBase,
  { id }: Backfill,
  { read, filled, rowsPerSecond, waitsFor }: RecordedStep,
): Promise<void> {
  await client.query(
    `update graphile_migrate.backfills set read = $2, filled = $3, rows_per_second = $4, waits_for = $5,
       updated_at = pg_catalog.clock_timestamp() where id = $1`,
    [id, read, filled, rowsPerSecond, waitsFor],
  );
}

export async function recordError(client: pg.ClientBase, { id }: Backfill, message: string): Promise<void> {
  await client.query("update graphile_migrate.backfills set error = $2, waits_for = null where id = $1", [id, message]);
}

export async function recordEnd(client: pg.ClientBase, { id }: Backfill): Promise<void> {
  await client.query("delete from graphile_migrate.backfills where id = $1", [id]);
}

type RecordRow = BackfillProgress & { readonly id: number; readonly isPaused: boolean; readonly isAlive: boolean };

const IS_ALIVE = `exists (select from pg_catalog.pg_locks as lock where locktype = 'advisory' and objid = ${BACKFILL_LOCK} and granted
  and lock.pid = recorded.pid and database = (select oid from pg_catalog.pg_database where datname = pg_catalog.current_database()))`;

const RECORDS = `
  select id::pg_catalog.int8::pg_catalog.float8 as id, is_paused as "isPaused", ${IS_ALIVE} as "isAlive",
    read::pg_catalog.float8 as read, filled::pg_catalog.float8 as filled, rows_per_second as "rowsPerSecond", load, waits_for as "waitsFor",
    error, started_at as "startedAt", updated_at as "updatedAt"
  from graphile_migrate.backfills as recorded`;

/** The backfills that are not complete, in the order of their tables. Reads no table. */
export function listBackfills(url: string): Promise<ListedBackfill[]> {
  return withClient(url, async (client) => {
    const declared = await readDeclaredBackfills(client);
    const records = (await hasRecord(client)) ? (await client.query<RecordRow>(RECORDS)).rows : [];
    return declared.map(({ id, table, column, estimatedRows }) => {
      const record = records.find((each) => each.id === id);
      if (!record) return { id, table, column, estimatedRows, state: "not started", progress: null };
      const { id: _, isPaused, isAlive, ...progress } = record;
      const state = isAlive ? (isPaused ? "paused" : "running") : "stopped";
      return { id, table, column, estimatedRows, state, progress };
    });
  });
}

/** Asks the session that runs the backfill to pause it after its batch, or to continue. False if no session runs it. */
export function pauseBackfill(url: string, id: number, isPaused: boolean): Promise<boolean> {
  return withClient(url, async (client) => {
    if (!(await hasRecord(client))) return false;
    const { rowCount } = await client.query(
      `update graphile_migrate.backfills as recorded set is_paused = $2 where id = $1::pg_catalog.int8::pg_catalog.oid and ${IS_ALIVE}`,
      [id, isPaused],
    );
    return rowCount === 1;
  });
}
