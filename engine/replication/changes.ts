import type { Lsn } from "../database/lsn.ts";
import type { AsOwner } from "../database/owner-pool.ts";
import type { Logger } from "../output/log.ts";
import { ChangeStream } from "./change-stream.ts";
import type { SlotRetention } from "./replication-slots.ts";

/** What has been committed to the database, in commit order: one stream for everybody in this process. */
export type ReplicationStream = {
  state(): ReplicationState;
  /** Asks the database. */
  statistics(): Promise<ReplicationStatistics>;
  /**
   * From the next transaction on or, with `since`, from the first one whose `commitLsn` is above it. Opens the stream
   * where nobody followed.
   */
  follow(follower: ChangeFollower, since?: Lsn): ChangeSubscription;
  /** A message to all who follow this database, in this process and others; resolves when it is committed. */
  emit(prefix: string, content: Uint8Array): Promise<void>;
  close(): Promise<void>;
};

export type ReplicationState = {
  /** `away`: the connection is lost, and sought again. `refused`: this database gives no stream, or none any more, and `reason` says what to do. */
  readonly status: "idle" | "opening" | "streaming" | "away" | "refused";
  readonly reason: string | null;
  /** Every transaction whose `commitLsn` is not above it has been handed on. */
  readonly position: Lsn | null;
  /** In whose history positions have a meaning: one word for a cluster and its timeline. Null before anything was read. */
  readonly history: string | null;
};

export type ReplicationStatistics = {
  readonly status: ReplicationState["status"];
  /** Those who follow the present. */
  readonly followers: number;
  /** Told since the start. */
  readonly transactions: number;
  readonly changes: number;
  /** How often something was missed. */
  readonly gaps: number;
  /** How far the stream is behind the database; null while there is none, or the database cannot say. */
  readonly lag: ReplicationLag | null;
  /** What the slots for this database's changes, of all processes, keep of the log; null while the database cannot say. */
  readonly retainedBytes: number | null;
};

export type ReplicationLag = { readonly bytes: number; readonly seconds: number };

/**
 * Told in commit order, one transaction after another: `begin`, its changes and messages, `commit`. A promise that is
 * returned is awaited before anything else is told to anybody, and Postgres waits too: a follower that must not hold up
 * the others keeps a bounded buffer of its own. One that throws is told of a gap.
 */
export type ChangeFollower = {
  /** Asked once for each relation in a transaction; what nobody wants is not decoded. */
  wants(relation: ReplicatedRelation): boolean;
  /** Called for transactions that hold something wanted, before the first of it. */
  begin?(transaction: CommittedTransaction): void | Promise<void>;
  change(change: RowChange, transaction: CommittedTransaction): void | Promise<void>;
  /** The transaction is complete; it was committed before `begin`. */
  commit?(transaction: CommittedTransaction): void | Promise<void>;
  message?(message: LogicalMessage): void | Promise<void>;
  /** Changes were missed. What comes next is a whole transaction; one that was open is not completed. */
  gap(gap: ReplicationGap): void;
};

export type ChangeSubscription = {
  /**
   * The position from which nothing is missed. With `since` it resolves when what was missed has been told, and live
   * transactions follow. Rejects with an ApiError where the stream is refused or `since` is no longer kept.
   */
  readonly from: Promise<Lsn>;
  close(): void;
};

/** It is in the log, and so will never be undone. A snapshot taken at once may still miss it: Postgres shows it a moment later. */
export type CommittedTransaction = {
  readonly xid: number;
  /** Transactions are ordered by it. To resume after this transaction, follow since it; amid it, since one less. */
  readonly commitLsn: Lsn;
  readonly commitTime: Date;
};

export type RowChange = {
  readonly kind: "INSERT" | "UPDATE" | "DELETE" | "TRUNCATE";
  readonly relation: ReplicatedRelation;
  /** Null for DELETE and TRUNCATE. */
  readonly new: ReplicatedRow | null;
  /** Null for INSERT and TRUNCATE, and for an UPDATE that logs no old row; less than the whole row unless the replica identity is full. */
  readonly old: ReplicatedRow | null;
  /** Its number in the transaction, which counts what others want too: the same whenever the transaction is read again. */
  readonly index: number;
};

/** Values as Postgres writes them, in the order of the relation's columns. Undefined: not in the log. */
export type ReplicatedRow = readonly (string | null | undefined)[];

/** A new object whenever the table was altered. */
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
  /** As in `pg_type.typname`; of a domain, its base type's. */
  readonly typeName: string;
  /** In the replica identity: with `full` every column is. */
  readonly isIdentity: boolean;
};

/** Of `pg_logical_emit_message`. */
export type LogicalMessage = {
  readonly prefix: string;
  readonly content: Buffer;
  /** Null: sent without waiting for a commit. */
  readonly transaction: CommittedTransaction | null;
  readonly lsn: Lsn;
  /** As a change's. */
  readonly index: number;
};

export type ReplicationGap = {
  readonly reason: string;
  /** What was told last, and from where it goes on. */
  readonly after: Lsn;
  readonly until: Lsn;
};

export type ReplicationOptions = {
  /** As the owner, who may replicate. */
  readonly url: string;
  readonly asOwner: AsOwner;
  /** Its tables are streamed. */
  readonly publication: string;
  /** Whether a slot keeps the log for those who resume. `auto`: where the server bounds what a slot may keep. */
  readonly keep?: SlotRetention;
  /** For how long; so long, too, the stream goes on for nobody. */
  readonly keptMs?: number;
  /** How long a follower may take for one thing, and Postgres for an answer; then the connection is given up, and sought again. */
  readonly patienceMs?: number;
  readonly applicationName?: string;
  readonly log: Pick<Logger, "info" | "warn" | "error">;
};

/** Connects to nothing yet: whoever follows first opens the stream. */
export function openReplication(options: ReplicationOptions): ReplicationStream {
  return new ChangeStream(options);
}
