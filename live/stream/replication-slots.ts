import { randomBytes } from "node:crypto";
import pg from "pg";
import { withServiceClient } from "#postgres/client";
import { formatLsn, type Lsn, parseLsn } from "#postgres/database";
import { unavailable } from "#runtime";
import type { Logger } from "#runtime/log";
import type { SlotRetention } from "./changes.ts";

/** The publication for Realtime, as Supabase names it. */
export const REALTIME_PUBLICATION = "supabase_realtime";

/** The limit in bytes: this much is read again within seconds. */
const MAX_RETAINED_BYTES = 256 * 2 ** 20;
/** The number of steps in which the keeper advances over the retention time. */
const ADVANCE_STEPS = 8;

export type ReplicationSlotOptions = {
  readonly publication: string;
  /** `auto`: if the server limits what a slot may retain. */
  readonly keep: SlotRetention;
  /** The start of the WAL that a copy of the keeper needed and that is gone, although Postgres reports it as reserved. */
  readonly goneFrom?: string | null;
};

export type ReplicationSlot = {
  readonly name: string;
  /** True if a keeper slot retains the WAL for it. */
  readonly isKept: boolean;
  /** How much WAL the server lets a slot retain; null for no limit. */
  readonly maxBytes: number | null;
  /** The position that Postgres decodes from. */
  readonly restart: string;
  /** Transactions committed before it are not available from this slot. */
  readonly earliest: Lsn;
  /** Transactions committed from now on are above it. */
  readonly now: Lsn;
};

type ServerReplicationSettings = {
  readonly wal_level: string;
  readonly has_publication: boolean;
  readonly most_megabytes: number;
  readonly keeper: string;
  readonly has_failover_slots: boolean;
};

/** The name as SQL. Slots belong to the server; there is one keeper per database. */
export const KEEPER_SLOT_NAME =
  "'changes_' || (select oid from pg_catalog.pg_database where datname = pg_catalog.current_database())";
/** True since Postgres 17: standbys with `sync_replication_slots` then have a copy of such slots, so that the stream continues after a promotion. */
const HAS_FAILOVER_SLOTS = "pg_catalog.current_setting('server_version_num')::pg_catalog.int4 >= 170000";
const NO_SIZE_LIMIT = -1;
const ADVANCE_TIMEOUT_MS = 5_000;
const MAX_KEEPER_LAG_BYTES = 2 ** 30;
const DUPLICATE_OBJECT = "42710";

/** Creates a temporary slot on a replication connection. Rejects with an ApiError if this database cannot have one. */
export async function createTemporarySlot(
  client: pg.Client,
  { publication, keep, goneFrom = null }: ReplicationSlotOptions,
): Promise<ReplicationSlot> {
  const server = await readServerSettings(client, publication);
  if (server.wal_level !== "logical") {
    throw unavailable(
      `Changes are not streamed: wal_level of the database server is ${server.wal_level}, and must be logical.`,
    );
  }
  if (!server.has_publication) {
    throw unavailable(`Changes are not streamed: the database has no publication ${publication}.`);
  }
  const isBounded = server.most_megabytes !== NO_SIZE_LIMIT;
  const isKept = keep === "always" || (keep === "auto" && isBounded);
  const name = `${server.keeper}_${randomBytes(6).toString("hex")}`;
  if (isKept) {
    await ensureKeeperSlot(client, goneFrom);
    if (server.has_failover_slots) await ensureFailover(client, server.keeper);
    await client.query(`select pg_catalog.pg_copy_logical_replication_slot(${KEEPER_SLOT_NAME}, '${name}', true)`);
  } else {
    await client.query(`select pg_catalog.pg_create_logical_replication_slot('${name}', 'pgoutput', true)`);
  }
  const { rows } = await client.query<{ restart: string; earliest: string; now: string }>(
    `select restart_lsn as restart, confirmed_flush_lsn as earliest, pg_catalog.pg_current_wal_flush_lsn() as now
     from pg_catalog.pg_replication_slots where slot_name = '${name}'`,
  );
  return {
    name,
    isKept,
    maxBytes: isBounded ? server.most_megabytes * 2 ** 20 : null,
    restart: rows[0]!.restart,
    earliest: parseLsn(rows[0]!.earliest)!,
    now: parseLsn(rows[0]!.now)!,
  };
}

/** Releases the WAL up to a position, on behalf of all readers of this database. */
async function advanceKeeperSlot(client: pg.Client, to: Lsn): Promise<void> {
  await ensureKeeperSlot(client);
  // The statement waits for standbys of synchronized_standby_slots, which may be away.
  await client.query(`set statement_timeout = ${ADVANCE_TIMEOUT_MS}`);
  await client.query(
    `select pg_catalog.pg_replication_slot_advance(slot_name, '${formatLsn(to)}') from pg_catalog.pg_replication_slots
     where slot_name = ${KEEPER_SLOT_NAME} and confirmed_flush_lsn < '${formatLsn(to)}' and not active`,
  );
}

/** Drops the keeper unless a reader is active. Resolves to true if the keeper is gone. */
async function dropKeeperSlot(client: pg.Client): Promise<boolean> {
  await client.query(
    `select pg_catalog.pg_drop_replication_slot(slot_name) from pg_catalog.pg_replication_slots
     where slot_name = ${KEEPER_SLOT_NAME} and not active
       and not exists (select from pg_catalog.pg_replication_slots where pg_catalog.starts_with(slot_name, ${KEEPER_SLOT_NAME} || '_'))`,
  );
  const { rowCount } = await client.query(
    `select from pg_catalog.pg_replication_slots where slot_name = ${KEEPER_SLOT_NAME}`,
  );
  return rowCount === 0;
}

/** The lag of a reader at `next`, and the WAL that the slots of the database retain. */
export async function measureWal(
  client: pg.ClientBase,
  next: Lsn | null,
): Promise<{ readonly lagBytes: number | null; readonly retainedBytes: number }> {
  const { rows } = await client.query<{ lag: string | null; retained: string }>(
    `select pg_catalog.pg_wal_lsn_diff(pg_catalog.pg_current_wal_flush_lsn(), $1) as lag,
       (select coalesce(pg_catalog.max(pg_catalog.pg_wal_lsn_diff(pg_catalog.pg_current_wal_flush_lsn(), restart_lsn)), 0) from pg_catalog.pg_replication_slots
        where database = pg_catalog.current_database() and pg_catalog.starts_with(slot_name, ${KEEPER_SLOT_NAME})) as retained`,
    [next === null ? null : formatLsn(next)],
  );
  const { lag, retained } = rows[0]!;
  return { lagBytes: lag === null ? null : Math.max(0, Number(lag)), retainedBytes: Number(retained) };
}

async function readServerSettings(client: pg.Client, publication: string): Promise<ServerReplicationSettings> {
  const { rows } = await client.query<ServerReplicationSettings>(
    `select pg_catalog.current_setting('wal_level') as wal_level,
       exists (select from pg_catalog.pg_publication where pubname = ${pg.escapeLiteral(publication)}) as has_publication,
       (select setting::pg_catalog.int4 from pg_catalog.pg_settings where name = 'max_slot_wal_keep_size') as most_megabytes,
       ${KEEPER_SLOT_NAME} as keeper,
       ${HAS_FAILOVER_SLOTS} as has_failover_slots`,
  );
  return rows[0]!;
}

/**
 * Creates the keeper unless a usable one exists. An old one has lost its WAL, retains too much, or belongs to a server whose files
 * were replaced by those of a base backup.
 */
async function ensureKeeperSlot(client: pg.Client, goneFrom: string | null = null): Promise<void> {
  await client.query(
    `select pg_catalog.pg_drop_replication_slot(slot_name) from pg_catalog.pg_replication_slots
     where slot_name = ${KEEPER_SLOT_NAME} and not active
       and (wal_status = 'lost' or pg_catalog.pg_wal_lsn_diff(pg_catalog.pg_current_wal_flush_lsn(), confirmed_flush_lsn) > ${MAX_KEEPER_LAG_BYTES}
         or restart_lsn > pg_catalog.pg_current_wal_flush_lsn()
         or restart_lsn <= ${goneFrom === null ? "null" : pg.escapeLiteral(goneFrom)}::pg_catalog.pg_lsn)`,
  );
  const { rows } = await client.query<{ has_failover_slots: boolean }>(
    `select ${HAS_FAILOVER_SLOTS} as has_failover_slots
     where not exists (select from pg_catalog.pg_replication_slots where slot_name = ${KEEPER_SLOT_NAME})`,
  );
  if (!rows[0]) return;
  const failover = rows[0].has_failover_slots ? ", failover => true" : "";
  try {
    await client.query(
      `select pg_catalog.pg_create_logical_replication_slot(${KEEPER_SLOT_NAME}, 'pgoutput'${failover})`,
    );
  } catch (error) {
    // Another process created it first.
    if (!(error instanceof pg.DatabaseError && error.code === DUPLICATE_OBJECT)) throw error;
  }
}

/** Lets standbys copy the keeper. One from before an upgrade to Postgres 17, or one that was created by hand, is not copied. */
async function ensureFailover(client: pg.Client, keeper: string): Promise<void> {
  const { rowCount } = await client.query(
    `select from pg_catalog.pg_replication_slots where slot_name = '${keeper}' and not failover and not active`,
  );
  if (rowCount === 0) return;
  // Another process may use the slot for a moment: the next reader tries again.
  await client.query(`ALTER_REPLICATION_SLOT ${keeper} (FAILOVER true)`).catch(() => {});
}

type KeeperSlotOptions = {
  readonly url: string;
  /** How far the keeper stays behind, in time. */
  readonly keptMs: number;
  readonly log: Pick<Logger, "warn">;
};

type KeeperSample = { readonly at: number; readonly next: Lsn };

/** Advances the keeper slot behind the reader; costs nothing if nothing is written. */
export class KeeperSlot {
  readonly #options: KeeperSlotOptions;
  #samples: KeeperSample[] = [];
  #pendingQuery: Promise<unknown> | null = null;

  constructor(options: KeeperSlotOptions) {
    this.#options = options;
  }

  /** Call for each transaction. */
  passed(next: Lsn, { isKept, maxBytes }: ReplicationSlot): void {
    if (!isKept) return;
    const { keptMs } = this.#options;
    const keptBytes = maxBytes === null ? MAX_RETAINED_BYTES : Math.min(MAX_RETAINED_BYTES, maxBytes / 2);
    const at = performance.now();
    const isBehind = (sample: KeeperSample, part: number) =>
      at - sample.at >= keptMs * part || Number(next - sample.next) >= keptBytes * part;
    const last = this.#samples.at(-1);
    if (last && !isBehind(last, 1 / ADVANCE_STEPS)) return;
    this.#samples.push({ at, next });
    const index = this.#samples.findLastIndex((sample) => isBehind(sample, 1));
    if (index < 0 || this.#pendingQuery) return;
    const { next: to } = this.#samples[index]!;
    this.#samples = this.#samples.slice(index + 1);
    this.#pendingQuery = this.#advance(to).finally(() => {
      this.#pendingQuery = null;
    });
  }

  /**
   * Drops the keeper when there are no followers. Resolves to true if the keeper is gone: other processes may still read, and
   * our own reader ends in a moment.
   */
  async retire(): Promise<boolean> {
    this.#samples = [];
    await this.#pendingQuery;
    const dropped = withServiceClient(this.#options.url, dropKeeperSlot).catch((error) => {
      this.#options.log.warn({ err: error }, "the slot that keeps changes for those who resume was not dropped");
      return false;
    });
    this.#pendingQuery = dropped;
    return dropped.finally(() => {
      this.#pendingQuery = null;
    });
  }

  async close(): Promise<void> {
    await this.#pendingQuery;
  }

  async #advance(to: Lsn): Promise<void> {
    await withServiceClient(this.#options.url, (client) => advanceKeeperSlot(client, to)).catch((error) => {
      this.#options.log.warn(
        { err: error, to: formatLsn(to) },
        "the slot that keeps changes for those who resume stays behind",
      );
    });
  }
}
