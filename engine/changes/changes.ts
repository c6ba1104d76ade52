import type { AsOwner } from "../database/as-owner.ts";
import type { Logger } from "../log.ts";
import type { Lsn } from "./lsn.ts";
import type { KeptSlot } from "./slots.ts";
import { ChangeStream } from "./stream.ts";

/** What has been committed to the database, in commit order: one stream for everybody in this process. */
export type Changes = {
  state(): ChangesState;
  /** Asks the database. */
  statistics(): Promise<ChangesStatistics>;
  /**
   * From the next transaction on or, with `since`, from the first one whose `commitLsn` is above it. Opens the stream
   * where nobody followed.
   */
  follow(follower: Follower, since?: Lsn): Following;
  /** A message to all who follow this database, in this process and others; resolves when it is committed. */
  emit(prefix: string, content: Uint8Array): Promise<void>;
  close(): Promise<void>;
};

export type ChangesState = {
  /** `away`: the connection is lost, and sought again. `refused`: this database gives no stream, or none any more, and `reason` says what to do. */
  readonly status: "idle" | "opening" | "streaming" | "away" | "refused";
  readonly reason: string | null;
  /** Every transaction whose `commitLsn` is not above it has been handed on. */
  readonly position: Lsn | null;
  /** In whose history positions have a meaning: one word for a cluster and its timeline. Null before anything was read. */
  readonly history: string | null;
};

export type ChangesStatistics = {
  readonly status: ChangesState["status"];
  /** Those who follow the present. */
  readonly followers: number;
  /** Told since the start. */
  readonly transactions: number;
  readonly changes: number;
  /** How often something was missed. */
  readonly gaps: number;
  /** How far the stream is behind the database; null while there is none, or the database cannot say. */
  readonly lag: Lag | null;
  /** What the slots for this database's changes, of all processes, keep of the log; null while the database cannot say. */
  readonly retainedBytes: number | null;
};

export type Lag = { readonly bytes: number; readonly seconds: number };

/**
 * Told in commit order, one transaction after another: `begin`, its changes and messages, `commit`. A promise that is
 * returned is awaited before anything else is told to anybody, and Postgres waits too: a follower that must not hold up
 * the others keeps a bounded buffer of its own. One that throws is told of a gap.
 */
export type Follower = {
  /** Asked once for each relation in a transaction; what nobody wants is not decoded. */
  wants(relation: Relation): boolean;
  /** Called for transactions that hold something wanted, before the first of it. */
  begin?(transaction: Transaction): void | Promise<void>;
  change(change: Change, transaction: Transaction): void | Promise<void>;
  /** The transaction is complete; it was committed before `begin`. */
  commit?(transaction: Transaction): void | Promise<void>;
  message?(message: Message): void | Promise<void>;
  /** Changes were missed. What comes next is a whole transaction; one that was open is not completed. */
  gap(gap: Gap): void;
};

export type Following = {
  /**
   * The position from which nothing is missed. With `since` it resolves when what was missed has been told, and live
   * transactions follow. Rejects with an ApiError where the stream is refused or `since` is no longer kept.
   */
  readonly from: Promise<Lsn>;
  close(): void;
};

/** It is in the log, and so will never be undone. A snapshot taken at once may still miss it: Postgres shows it a moment later. */
export type Transaction = {
  readonly xid: number;
  /** Transactions are ordered by it. To resume after this transaction, follow since it; amid it, since one less. */
  readonly commitLsn: Lsn;
  readonly commitTime: Date;
};

export type Change = {
  readonly kind: "INSERT" | "UPDATE" | "DELETE" | "TRUNCATE";
  readonly relation: Relation;
  /** Null for DELETE and TRUNCATE. */
  readonly new: Row | null;
  /** Null for INSERT and TRUNCATE, and for an UPDATE that logs no old row; less than the whole row unless the replica identity is full. */
  readonly old: Row | null;
  /** Its number in the transaction, which counts what others want too: the same whenever the transaction is read again. */
  readonly index: number;
};

/** Values as Postgres writes them, in the order of the relation's columns. Undefined: not in the log. */
export type Row = readonly (string | null | undefined)[];

/** A new object whenever the table was altered. */
export type Relation = {
  readonly oid: number;
  readonly schema: string;
  readonly name: string;
  readonly replicaIdentity: "default" | "nothing" | "full" | "index";
  readonly columns: readonly RelationColumn[];
};

export type RelationColumn = {
  readonly name: string;
  readonly typeOid: number;
  /** As in `pg_type.typname`; of a domain, its base type's. */
  readonly typeName: string;
  /** In the replica identity: with `full` every column is. */
  readonly isIdentity: boolean;
};

/** Of `pg_logical_emit_message`. */
export type Message = {
  readonly prefix: string;
  readonly content: Buffer;
  /** Null: sent without waiting for a commit. */
  readonly transaction: Transaction | null;
  readonly lsn: Lsn;
  /** As a change's. */
  readonly index: number;
};

export type Gap = {
  readonly reason: string;
  /** What was told last, and from where it goes on. */
  readonly after: Lsn;
  readonly until: Lsn;
};

export type ChangesOptions = {
  /** As the owner, who may replicate. */
  readonly url: string;
  readonly asOwner: AsOwner;
  /** Its tables are streamed. */
  readonly publication: string;
  /** Whether a slot keeps the log for those who resume. `auto`: where the server bounds what a slot may keep. */
  readonly keep?: KeptSlot;
  /** For how long; so long, too, the stream goes on for nobody. */
  readonly keptMs?: number;
  /** How long a follower may take for one thing, and Postgres for an answer; then the connection is given up, and sought again. */
  readonly patienceMs?: number;
  readonly applicationName?: string;
  readonly log: Pick<Logger, "info" | "warn" | "error">;
};

/** Connects to nothing yet: whoever follows first opens the stream. */
export function openChanges(options: ChangesOptions): Changes {
  return new ChangeStream(options);
}
