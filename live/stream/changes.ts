import type { AsOwner, Lsn } from "#postgres/database";
import type { Supervisor } from "#runtime/concurrency";
import type { Logger } from "#runtime/log";

/** The changes that are committed to the database, in commit order: one stream for all followers in this process. */
export type ReplicationStream = {
  state(): ReplicationState;
  /** Queries the database. */
  statistics(): Promise<ReplicationStatistics>;
  /**
   * Follows from the next transaction or, with `since`, from the first one whose `commitLsn` is above it. The first
   * follower opens the stream.
   */
  follow(follower: ChangeFollower, since?: HistoryPosition): ChangeSubscription;
  /** Sends a message to the followers of this database in all processes; resolves when it is committed. */
  emit(prefix: string, content: Uint8Array): Promise<void>;
  close(): Promise<void>;
};

export type ReplicationState = {
  /** `away`: the connection is lost and being reopened. `refused`: the database gives no stream; `reason` says what to do. */
  readonly status: "idle" | "opening" | "streaming" | "away" | "refused";
  readonly reason: string | null;
  /** Every transaction up to this `commitLsn` has been delivered. */
  readonly position: Lsn | null;
  /** The history that the position belongs to. Null before anything was read. */
  readonly history: StreamHistory | null;
};

/** The timeline that a server writes, and the timelines that it branched off. Promoting a standby starts a new timeline. */
export type StreamHistory = {
  /** Identifies the cluster and the timeline, with its ancestors: two standbys can be promoted to timelines with one number. */
  readonly id: string;
  readonly timeline: number;
  /** The LSN at which this timeline left each ancestor, by the ancestor's id: the server has nothing that was written to the ancestor after it. */
  readonly ancestors: ReadonlyMap<string, Lsn>;
};

/** A position, and the id of the history that it belongs to. */
export type HistoryPosition = { readonly lsn: Lsn; readonly history: string };

export type ReplicationStatistics = {
  readonly status: ReplicationState["status"];
  /** The number of followers, without those that still catch up. */
  readonly followers: number;
  /** The number of transactions delivered since the start. */
  readonly transactions: number;
  readonly changes: number;
  /** How often changes were missed. */
  readonly gaps: number;
  /** The lag of the stream; null if it is not running, or unknown. */
  readonly lag: ReplicationLag | null;
  /** The WAL that the slots of all processes for this database retain; null while it is unknown. */
  readonly retainedBytes: number | null;
};

type ReplicationLag = { readonly bytes: number; readonly seconds: number };

/**
 * Called in commit order, one transaction after another: `begin`, its changes and messages, `commit`. A returned promise
 * is awaited before any follower is called again, and Postgres waits too: a follower that must not delay the others keeps
 * a bounded buffer. A follower that throws gets a gap.
 */
export type ChangeFollower = {
  /** Called once per relation and transaction. Changes of relations that no follower wants are not decoded. */
  wants(relation: ReplicatedRelation): boolean;
  /** Called before the first wanted change of a transaction. */
  begin?(transaction: CommittedTransaction): void | Promise<void>;
  change(change: RowChange, transaction: CommittedTransaction): void | Promise<void>;
  /** The transaction is complete; it was committed before `begin`. */
  commit?(transaction: CommittedTransaction): void | Promise<void>;
  message?(message: LogicalMessage): void | Promise<void>;
  /** Changes were missed. An open transaction is not completed; the next call is the begin of another one. */
  gap(gap: ReplicationGap): void;
  /**
   * The stream continues on another timeline: everything delivered from `to` on does not exist there. Returns true if the follower could
   * discard it. If not, or without this method, the follower gets a gap if there may be such changes.
   */
  rewind?(to: Lsn): boolean;
};

export type ChangeSubscription = {
  /**
   * The position from which no change is missed. With `since` it resolves when the missed changes have been delivered,
   * and live transactions follow. Rejects with an ApiError if the stream is refused, `since` is no longer retained, or it is on a timeline
   * that was abandoned there.
   */
  readonly from: Promise<Lsn>;
  close(): void;
};

/** The transaction is in the WAL and will not be undone, but a snapshot taken immediately may not show it yet. */
export type CommittedTransaction = {
  readonly xid: number;
  /** The order of transactions. To resume after this transaction, follow since it; within it, since one less. */
  readonly commitLsn: Lsn;
  readonly commitTime: Date;
};

export type RowChange = {
  readonly kind: "INSERT" | "UPDATE" | "DELETE" | "TRUNCATE";
  readonly relation: ReplicatedRelation;
  /** Null for DELETE and TRUNCATE. */
  readonly new: ReplicatedRow | null;
  /** Null for INSERT and TRUNCATE, and for an UPDATE without an old row in the WAL; only partial unless the replica identity is full. */
  readonly old: ReplicatedRow | null;
  /** The change's number in the transaction, which counts unwanted changes too: the same each time the transaction is read. */
  readonly index: number;
};

/** A change of a row, by the transaction that made it. `number`: its place among all. */
export type CommittedChange = { readonly xid: number; readonly number: number; readonly change: RowChange };

/** Values in text format, in the order of the relation's columns. A value is undefined if it is not in the WAL, or too long for a string. */
export type ReplicatedRow = readonly (string | null | undefined)[];

/** The stream makes a new object after each change of the table's definition. */
export type ReplicatedRelation = {
  readonly oid: number;
  readonly schema: string;
  readonly name: string;
  readonly replicaIdentity: "default" | "nothing" | "full" | "index";
  readonly columns: readonly ReplicatedColumn[];
};

export type ReplicatedColumn = {
  readonly name: string;
  readonly typeOid: number;
  /** The name in `pg_type.typname`; for a domain, the name of its base type. */
  readonly typeName: string;
  /** True if the column is in the replica identity: with `full` every column is. */
  readonly isIdentity: boolean;
};

/** Written by `pg_logical_emit_message`. */
export type LogicalMessage = {
  readonly prefix: string;
  readonly content: Buffer;
  /** Null for a non-transactional message. */
  readonly transaction: CommittedTransaction | null;
  readonly lsn: Lsn;
  /** The message's number in the transaction, like `index` in RowChange. */
  readonly index: number;
};

export type ReplicationGap = {
  readonly reason: string;
  /** The last position before the gap, and the position where the stream continues. */
  readonly after: Lsn;
  readonly until: Lsn;
};

/**
 * Postgres retains the WAL that a slot has not confirmed. The keeper is a permanent slot without a reader that stays some time
 * behind; every reader uses a temporary copy of it, which is dropped with the connection. So a reader continues at its position after
 * it has lost its connection or replaces a killed process. A copy is created at once, but a new slot waits for all writing
 * transactions.
 */
export type SlotRetention = "auto" | "always" | "never";

export type ReplicationOptions = {
  /** Connection string of the owner, who may replicate. */
  readonly url: string;
  readonly asOwner: AsOwner;
  /** The publication whose tables are streamed. */
  readonly publication: string;
  /** Decides if a slot retains the WAL for followers that resume. `auto`: if the server limits the WAL that a slot may retain. */
  readonly keep?: SlotRetention;
  /** The time for which the WAL is retained, and the stream continues without followers. */
  readonly keptMs?: number;
  /** The timeout for a follower to handle a delivery, and for Postgres to respond; then the connection is reopened. */
  readonly patienceMs?: number;
  readonly applicationName?: string;
  readonly supervisor?: Supervisor;
  readonly log: Pick<Logger, "info" | "warn" | "error">;
};
