import pg from "pg";
import {
  isFatal,
  serverMessages as message,
  nameOfType,
  protocolViolation,
  type ResultField,
  readError,
  readFields,
  readRow,
} from "#postgres/client";
import { type MemoryAllowance, MessageEncoder, openPostgresSocket, type PostgresSocket } from "#postgres/database";
import type { ResultRow, Statement } from "#postgres/statement";

const APPLICATION_NAME = "content-service sql";
/** The number of rows that the server may send before the session decides if it still wants more bytes. */
const ROWS_PER_EXECUTE = 200;
export const MAX_NOTICES = 100;
const MAX_NOTICE_BYTES = 16 * 1024;
/** SQLSTATE feature_not_supported. */
const NOT_SUPPORTED = "0A000";
/** SQLSTATE program_limit_exceeded. */
const LIMIT_EXCEEDED = "54000";

/** Messages of the server about COPY: the client has to send, or to receive, rows. */
const COPY_MESSAGES: ReadonlySet<string> = new Set(["G", "H", "W"]);

export type ResultLimits = {
  readonly rows: number;
  readonly memory: MemoryAllowance;
  /** The allowance for the names and types of columns. */
  readonly columns: MemoryAllowance;
};

export type LimitedResult = {
  /** Null if the statement returns no rows. */
  readonly fields: readonly ResultField[] | null;
  readonly rows: readonly ResultRow[];
  /** The command tag, for example `INSERT 0 1`; null if not all rows were read. */
  readonly tag: string | null;
  /** The limit that was reached; the rows after it are missing. */
  readonly cut: "rows" | "bytes" | null;
};

/** A separate session for statements of administrators, which may leave settings, locks and temporary tables behind. */
export class ScriptSession {
  readonly #socket: PostgresSocket;
  readonly #outbox = new MessageEncoder();
  #running: StatementCollector | null = null;
  #lost: Error | null = null;
  #notices: pg.DatabaseError[] = [];
  #droppedNotices = 0;

  private constructor(socket: PostgresSocket) {
    this.#socket = socket;
    socket.listen(
      (type, buffer, start, end, owned) => this.#onMessage(type, buffer, start, end, owned),
      (reason) => this.#lose(reason),
      (type, bytes) => this.#admits(type, bytes),
    );
  }

  static async open(url: string, connectTimeout: number): Promise<ScriptSession> {
    return new ScriptSession(await openPostgresSocket({ url, applicationName: APPLICATION_NAME, connectTimeout }));
  }

  /** Runs one statement. The server stops at the limit of rows, but always completes a statement that changes rows. */
  run(statement: Statement, limits: ResultLimits): Promise<LimitedResult> {
    return new Promise((resolve, reject) => {
      if (this.#lost) return reject(this.#lost);
      const running = new StatementCollector(limits, { resolve, reject });
      this.#running = running;
      this.#outbox.parse("", statement.text);
      this.#outbox.bind("", statement.values);
      this.#outbox.describePortal();
      this.#outbox.executeSome(running.nextRows);
      this.#send();
    });
  }

  /** Returns the notices of the server since the last call. */
  takeNotices(): { readonly notices: readonly pg.DatabaseError[]; readonly dropped: number } {
    const taken = { notices: this.#notices, dropped: this.#droppedNotices };
    this.#notices = [];
    this.#droppedNotices = 0;
    return taken;
  }

  /** Cancels the running statement and ends the session, which rolls back its changes. */
  async abandon(): Promise<void> {
    try {
      if (this.#running) await this.#socket.cancel();
    } finally {
      this.#destroy(new Error("The session was abandoned"));
    }
  }

  close(): Promise<void> {
    return this.#lost ? Promise.resolve() : this.#socket.end();
  }

  #send(): void {
    this.#socket.write(this.#outbox.take());
  }

  #admits(type: number, bytes: number): boolean {
    if (type === message.NOTICE && bytes > MAX_NOTICE_BYTES) this.#droppedNotices++;
    if (type === message.NOTICE || type === message.NOTIFICATION) return bytes <= MAX_NOTICE_BYTES;
    return type !== message.DATA_ROW || (this.#running?.admits(bytes) ?? false);
  }

  #onMessage(type: number, buffer: Buffer, start: number, end: number, owned: boolean): void {
    const running = this.#running;
    switch (type) {
      case message.PARAMETER_STATUS:
      case message.NOTIFICATION:
        break;
      case message.NOTICE:
        this.#onNotice(buffer, start, end);
        break;
      case message.ERROR:
        this.#onError(readError(buffer, start, end));
        break;
      case message.PORTAL_SUSPENDED:
        if (running?.wantsMore) this.#outbox.executeSome(running.nextRows);
        else this.#outbox.sync();
        this.#send();
        break;
      case message.COMMAND_COMPLETE:
        running?.complete(buffer.toString("utf8", start, end - 1));
        this.#sync();
        break;
      case message.EMPTY_QUERY:
        this.#sync();
        break;
      case message.READY_FOR_QUERY:
        this.#running = null;
        running?.end();
        break;
      default:
        this.#onResult(type, buffer, start, end, owned);
    }
  }

  #onResult(type: number, buffer: Buffer, start: number, end: number, owned: boolean): void {
    if (!this.#running) throw protocolViolation(`a message of type ${nameOfType(type)} without a statement`);
    if (type === message.ROW_DESCRIPTION) this.#running.describe(buffer, start, end);
    else if (type === message.DATA_ROW) this.#running.row(buffer, start, end, owned);
    else if (COPY_MESSAGES.has(nameOfType(type))) this.#destroy(copyRefused());
  }

  #onNotice(buffer: Buffer, start: number, end: number): void {
    if (this.#notices.length < MAX_NOTICES) this.#notices.push(readError(buffer, start, end));
    else this.#droppedNotices++;
  }

  #onError(error: pg.DatabaseError): void {
    if (isFatal(error)) this.#destroy(error);
    else {
      this.#running?.fail(error);
      this.#sync();
    }
  }

  #sync(): void {
    this.#outbox.sync();
    this.#send();
  }

  #destroy(reason: Error): void {
    this.#lose(reason);
    this.#socket.destroy();
  }

  #lose(reason: Error): void {
    this.#lost ??= reason;
    this.#running?.fail(reason);
    this.#running?.end();
    this.#running = null;
  }
}

type ResultCallbacks = {
  readonly resolve: (result: LimitedResult) => void;
  readonly reject: (error: unknown) => void;
};

class StatementCollector {
  readonly #limits: ResultLimits;
  readonly #callbacks: ResultCallbacks;
  readonly #rows: ResultRow[] = [];
  #fields: readonly ResultField[] | null = null;
  #tag: string | null = null;
  #cut: LimitedResult["cut"] = null;
  #error: Error | null = null;

  constructor(limits: ResultLimits, callbacks: ResultCallbacks) {
    this.#limits = limits;
    this.#callbacks = callbacks;
  }

  /** Asks for one row more than the limit, to find out if there are more. */
  get nextRows(): number {
    return Math.min(ROWS_PER_EXECUTE, this.#limits.rows + 1 - this.#rows.length);
  }

  get wantsMore(): boolean {
    return this.#cut === null;
  }

  admits(bytes: number): boolean {
    if (this.#cut !== null) return false;
    if (this.#rows.length >= this.#limits.rows) this.#cut = "rows";
    else if (!this.#limits.memory.take(bytes)) this.#cut = "bytes";
    return this.#cut === null;
  }

  describe(buffer: Buffer, start: number, end: number): void {
    if (this.#limits.columns.take(end - start)) this.#fields = readFields(buffer, start, end);
    else this.fail(tooManyColumns());
  }

  /** A row that spanned several chunks was admitted before it was collected. */
  row(buffer: Buffer, start: number, end: number, owned: boolean): void {
    if (owned || this.admits(end - start)) this.#rows.push(readRow(buffer, start, end));
  }

  /** Replaces the tag of SELECT, which counts the rows since the last Execute only. */
  complete(tag: string): void {
    this.#tag = tag.replace(/^SELECT \d+$/, () => `SELECT ${this.#rows.length}`);
  }

  fail(error: Error): void {
    this.#error ??= error;
  }

  end(): void {
    if (this.#error) this.#callbacks.reject(this.#error);
    else this.#callbacks.resolve({ fields: this.#fields, rows: this.#rows, tag: this.#tag, cut: this.#cut });
  }
}

function copyRefused(): pg.DatabaseError {
  return scriptError(NOT_SUPPORTED, "COPY cannot be run here: there is no file to read or write");
}

function tooManyColumns(): pg.DatabaseError {
  return scriptError(LIMIT_EXCEEDED, "The results have too many columns together: send fewer statements at once");
}

function scriptError(code: string, message: string): pg.DatabaseError {
  return Object.assign(new pg.DatabaseError(message, 0, "error"), { code, severity: "ERROR" });
}
