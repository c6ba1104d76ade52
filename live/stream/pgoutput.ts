import { constants } from "node:buffer";
import { protocolViolation } from "#postgres/client";
import type { Lsn } from "#postgres/database";
import type {
  CommittedTransaction,
  LogicalMessage,
  ReplicatedColumn,
  ReplicatedRelation,
  ReplicatedRow,
  RowChange,
} from "./changes.ts";

/** Receives the decoded messages. A returned promise is awaited before the next message is decoded. */
export type WalHandler = {
  begin(transaction: CommittedTransaction): HandlerResult;
  /** Returns true if the relation's rows are to be decoded. */
  wants(relation: ReplicatedRelation): boolean;
  change(change: RowChange): HandlerResult;
  message(message: Omit<LogicalMessage, "transaction">): HandlerResult;
  /** `next` is the position after the transaction. */
  commit(next: Lsn): HandlerResult;
};

export type HandlerResult = void | Promise<void>;

/** Postgres's epoch, 2000-01-01. */
const POSTGRES_EPOCH_MS = 946_684_800_000;

const REPLICA_IDENTITIES: Readonly<Record<string, ReplicatedRelation["replicaIdentity"]>> = {
  d: "default",
  n: "nothing",
  f: "full",
  i: "index",
};

/**
 * Decodes the messages of the output plugin pgoutput, protocol version 1: a transaction arrives when it is committed.
 * https://www.postgresql.org/docs/current/protocol-logicalrep-message-formats.html
 */
export class PgoutputDecoder {
  readonly #typeNames: Map<number, string>;
  readonly #relations = new Map<number, ReplicatedRelation>();
  #bytes: Buffer = Buffer.alloc(0);
  #at = 0;
  #index = 0;

  /** `builtIn` has the names of built-in types; the stream names all others. */
  constructor(builtIn: ReadonlyMap<number, string>) {
    this.#typeNames = new Map(builtIn);
  }

  /** Decodes a message; does not retain the bytes. */
  read(bytes: Buffer, start: number, handler: WalHandler): HandlerResult {
    this.#bytes = bytes;
    this.#at = start + 1;
    switch (String.fromCharCode(bytes[start]!)) {
      case "B":
        return handler.begin(this.#transaction());
      case "C":
        return handler.commit(this.#commit());
      case "I":
        return this.#insert(handler);
      case "U":
        return this.#update(handler);
      case "D":
        return this.#delete(handler);
      case "T":
        return this.#truncate(handler);
      case "M":
        return this.#message(handler);
      case "R":
        return this.#relation();
      case "Y":
        return this.#type();
      default:
        // Origin messages, and messages of later protocol versions, are ignored.
        return;
    }
  }

  #transaction(): CommittedTransaction {
    this.#index = 0;
    const commitLsn = this.#lsn();
    const commitTime = new Date(POSTGRES_EPOCH_MS + Number(this.#lsn() / 1000n));
    return { commitLsn, commitTime, xid: this.#uint32() };
  }

  /** The position after the transaction is between flags (1), the commit's (8), and its time (8). */
  #commit(): Lsn {
    this.#skip(1 + 8);
    const next = this.#lsn();
    this.#skip(8);
    return next;
  }

  #insert(handler: WalHandler): HandlerResult {
    const index = this.#index++;
    const relation = this.#relationOf(this.#uint32());
    if (!handler.wants(relation)) return;
    this.#at++;
    return handler.change({ kind: "INSERT", relation, new: this.#row(relation, null), old: null, index });
  }

  #update(handler: WalHandler): HandlerResult {
    const index = this.#index++;
    const relation = this.#relationOf(this.#uint32());
    if (!handler.wants(relation)) return;
    const old = this.#bytes[this.#at] === NEW_ROW ? null : this.#oldRow(relation);
    this.#at++;
    return handler.change({ kind: "UPDATE", relation, new: this.#row(relation, old), old, index });
  }

  #delete(handler: WalHandler): HandlerResult {
    const index = this.#index++;
    const relation = this.#relationOf(this.#uint32());
    if (!handler.wants(relation)) return;
    return handler.change({ kind: "DELETE", relation, new: null, old: this.#oldRow(relation), index });
  }

  async #truncate(handler: WalHandler): Promise<void> {
    const count = this.#uint32();
    this.#at++;
    if (count > (this.#bytes.length - this.#at) / 4) throw malformed("a truncation of more tables than it names");
    const truncated = Array.from({ length: count }, () => ({
      kind: "TRUNCATE" as const,
      relation: this.#relationOf(this.#uint32()),
      new: null,
      old: null,
      index: this.#index++,
    }));
    for (const change of truncated) {
      if (handler.wants(change.relation)) await handler.change(change);
    }
  }

  #message(handler: WalHandler): HandlerResult {
    this.#at++;
    const lsn = this.#lsn();
    const prefix = this.#name();
    const length = this.#uint32();
    if (this.#at + length !== this.#bytes.length) throw malformed("a message that is not as long as it says");
    const content = Buffer.from(this.#bytes.subarray(this.#at));
    return handler.message({ prefix, content, lsn, index: this.#index++ });
  }

  #relation(): void {
    const oid = this.#uint32();
    const schema = this.#name() || "pg_catalog";
    const name = this.#name();
    const replicaIdentity = REPLICA_IDENTITIES[String.fromCharCode(this.#bytes[this.#at++]!)]!;
    const columns = Array.from({ length: this.#uint16() }, () => this.#column());
    this.#relations.set(oid, { oid, schema, name, replicaIdentity, columns });
  }

  #relationOf(oid: number): ReplicatedRelation {
    const relation = this.#relations.get(oid);
    if (!relation) throw malformed("a change of a table that it has not described");
    return relation;
  }

  #column(): ReplicatedColumn {
    const isIdentity = this.#bytes[this.#at++] === 1;
    const name = this.#name();
    const typeOid = this.#uint32();
    this.#skip(4);
    return { name, typeOid, typeName: this.#typeNames.get(typeOid)!, isIdentity };
  }

  #type(): void {
    const oid = this.#uint32();
    this.#name();
    this.#typeNames.set(oid, this.#name());
  }

  /** Reads an old row. In a partial one, columns outside the replica identity are null. */
  #oldRow(relation: ReplicatedRelation): ReplicatedRow {
    const isWhole = this.#bytes[this.#at++] === WHOLE_OLD_ROW;
    const row = this.#row(relation, null);
    return isWhole ? row : row.map((value, column) => (relation.columns[column]!.isIdentity ? value : undefined));
  }

  /** Reads a row. A new row lacks unchanged TOAST values. */
  #row({ columns }: ReplicatedRelation, old: ReplicatedRow | null): ReplicatedRow {
    const bytes = this.#bytes;
    if (this.#uint16() !== columns.length) throw malformed("a row with more or fewer columns than its table");
    let at = this.#at;
    const row = new Array<string | null | undefined>(columns.length);
    for (let column = 0; column < row.length; column++) {
      switch (bytes[at++]) {
        case TEXT_VALUE: {
          const start = at + 4;
          if (start <= bytes.length) at = start + bytes.readUInt32BE(at);
          if (at < start || at > bytes.length) throw malformed("a row with a value that exceeds it");
          // Postgres has values that are longer than any string: the change is delivered without them.
          row[column] = at - start > constants.MAX_STRING_LENGTH ? undefined : bytes.toString("utf8", start, at);
          break;
        }
        case NULL_VALUE:
          row[column] = null;
          break;
        case UNCHANGED_VALUE:
          row[column] = old?.[column];
          break;
        default:
          throw malformed("a row with a value of an unknown kind");
      }
    }
    this.#at = at;
    return row;
  }

  #uint16(): number {
    return this.#bytes.readUInt16BE(this.#skip(2));
  }

  #uint32(): number {
    return this.#bytes.readUInt32BE(this.#skip(4));
  }

  #lsn(): Lsn {
    return this.#bytes.readBigUInt64BE(this.#skip(8));
  }

  /** Moves on by this many bytes; returns the offset before. */
  #skip(bytes: number): number {
    const start = this.#at;
    this.#at += bytes;
    if (this.#at > this.#bytes.length) throw malformed("a message that ends early");
    return start;
  }

  #name(): string {
    const start = this.#at;
    const end = this.#bytes.indexOf(0, start);
    if (end < 0) throw malformed("a name without an end");
    this.#at = end + 1;
    return this.#bytes.toString("utf8", start, end);
  }
}

const NEW_ROW = "N".charCodeAt(0);
const WHOLE_OLD_ROW = "O".charCodeAt(0);
const TEXT_VALUE = "t".charCodeAt(0);
const NULL_VALUE = "n".charCodeAt(0);
const UNCHANGED_VALUE = "u".charCodeAt(0);

function malformed(what: string): Error {
  return protocolViolation(`in the change stream, ${what}`);
}
