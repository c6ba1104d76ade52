import { randomBytes } from "node:crypto";
import pg from "pg";
import { unavailable } from "../errors.ts";
import { formatLsn, type Lsn, parseLsn } from "./lsn.ts";

/**
 * Postgres keeps of the log what a slot has not read. The keeper is a slot that nobody reads: it stays a while behind,
 * and every reader begins with a temporary copy of it, which is gone with the connection. So a reader that lost its
 * connection, or comes in place of one that was killed, goes on where it was. A copy is made at once, while a new slot
 * waits for every transaction that is writing.
 */
export type KeptSlot = "auto" | "always" | "never";

export type SlotOptions = {
  readonly publication: string;
  /** `auto`: where the server bounds what a slot may keep of the log. */
  readonly keep: KeptSlot;
};

export type Slot = {
  readonly name: string;
  /** Whether a keeper stands behind it. */
  readonly isKept: boolean;
  /** What the server lets a slot keep of the log; null: whatever it takes. */
  readonly mostBytes: number | null;
  /** What was committed before it is not in the log any more, as far as this slot knows. */
  readonly earliest: Lsn;
  /** What is committed from now on lies behind it. */
  readonly now: Lsn;
};

type Server = {
  readonly wal_level: string;
  readonly has_publication: boolean;
  readonly most_megabytes: number;
  readonly keeper: string;
};

/** Slots are the server's, and a keeper is a database's. */
const KEEPER = "'changes_' || (select oid from pg_database where datname = current_database())";
const UNBOUNDED = -1;
const MOST_BEHIND_BYTES = 2 ** 30;
const DUPLICATE = "42710";

/** A temporary slot of the connection, which must be one for replication. Rejects with an ApiError where this database cannot have one. */
export async function takeSlot(client: pg.Client, { publication, keep }: SlotOptions): Promise<Slot> {
  const server = await readServer(client, publication);
  if (server.wal_level !== "logical") {
    throw unavailable(
      `Changes are not streamed: wal_level of the database server is ${server.wal_level}, and must be logical.`,
    );
  }
  if (!server.has_publication) {
    throw unavailable(`Changes are not streamed: the database has no publication ${publication}.`);
  }
  const isBounded = server.most_megabytes !== UNBOUNDED;
  const isKept = keep === "always" || (keep === "auto" && isBounded);
  const name = `${server.keeper}_${randomBytes(6).toString("hex")}`;
  if (isKept) {
    await makeKeeper(client);
    await client.query(`select pg_copy_logical_replication_slot(${KEEPER}, '${name}', true)`);
  } else {
    await client.query(`select pg_create_logical_replication_slot('${name}', 'pgoutput', true)`);
  }
  const { rows } = await client.query<{ earliest: string; now: string }>(
    `select confirmed_flush_lsn as earliest, pg_current_wal_flush_lsn() as now
     from pg_replication_slots where slot_name = '${name}'`,
  );
  return {
    name,
    isKept,
    mostBytes: isBounded ? server.most_megabytes * 2 ** 20 : null,
    earliest: parseLsn(rows[0]!.earliest)!,
    now: parseLsn(rows[0]!.now)!,
  };
}

/** Lets go of the log up to there, on behalf of whoever reads this database. */
export async function advanceKeeper(client: pg.Client, to: Lsn): Promise<void> {
  await makeKeeper(client);
  await client.query(
    `select pg_replication_slot_advance(slot_name, '${formatLsn(to)}') from pg_replication_slots
     where slot_name = ${KEEPER} and confirmed_flush_lsn < '${formatLsn(to)}' and not active`,
  );
}

/** Keeps nothing any more, unless somebody still reads. Resolves with whether that is so. */
export async function dropKeeper(client: pg.Client): Promise<boolean> {
  await client.query(
    `select pg_drop_replication_slot(slot_name) from pg_replication_slots
     where slot_name = ${KEEPER} and not active
       and not exists (select from pg_replication_slots where starts_with(slot_name, ${KEEPER} || '_'))`,
  );
  const { rowCount } = await client.query(`select from pg_replication_slots where slot_name = ${KEEPER}`);
  return rowCount === 0;
}

/** How far behind the log a reader is that goes on there, and what the slots of the database keep of it. */
export async function measureLog(
  client: pg.ClientBase,
  next: Lsn | null,
): Promise<{ readonly lagBytes: number | null; readonly retainedBytes: number }> {
  const { rows } = await client.query<{ lag: string | null; retained: string }>(
    `select pg_wal_lsn_diff(pg_current_wal_flush_lsn(), $1) as lag,
       (select coalesce(max(pg_wal_lsn_diff(pg_current_wal_flush_lsn(), restart_lsn)), 0) from pg_replication_slots
        where database = current_database() and starts_with(slot_name, ${KEEPER})) as retained`,
    [next === null ? null : formatLsn(next)],
  );
  const { lag, retained } = rows[0]!;
  return { lagBytes: lag === null ? null : Math.max(0, Number(lag)), retainedBytes: Number(retained) };
}

async function readServer(client: pg.Client, publication: string): Promise<Server> {
  const { rows } = await client.query<Server>(
    `select current_setting('wal_level') as wal_level,
       exists (select from pg_publication where pubname = ${pg.escapeLiteral(publication)}) as has_publication,
       (select setting::int4 from pg_settings where name = 'max_slot_wal_keep_size') as most_megabytes,
       ${KEEPER} as keeper`,
  );
  return rows[0]!;
}

/** Unless there is one that is good. One that was left alone too long has lost its log, or has too much to be read again. */
async function makeKeeper(client: pg.Client): Promise<void> {
  await client.query(
    `select pg_drop_replication_slot(slot_name) from pg_replication_slots
     where slot_name = ${KEEPER} and not active
       and (wal_status = 'lost' or pg_wal_lsn_diff(pg_current_wal_flush_lsn(), confirmed_flush_lsn) > ${MOST_BEHIND_BYTES})`,
  );
  try {
    await client.query(
      `select pg_create_logical_replication_slot(${KEEPER}, 'pgoutput')
       where not exists (select from pg_replication_slots where slot_name = ${KEEPER})`,
    );
  } catch (error) {
    // Another process was faster.
    if (!(error instanceof pg.DatabaseError && error.code === DUPLICATE)) throw error;
  }
}
