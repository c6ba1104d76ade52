import type { DatabaseError } from "pg";
import { FifoQueue } from "#runtime/concurrency";
import * as message from "../client/server-messages.ts";
import { isFatal, readError, readPair, readTransactionStatus } from "../client/server-messages.ts";
import { adaptSteps, type BatchStep, type TransactionCapabilities } from "./batch-steps.ts";
import {
  ContextError,
  PrecedingStatementError,
  setFailedStatement,
  unexpectedTransactionState,
} from "./database-errors.ts";
import { BatchProgress, makeRollback, type PipelinedBatch } from "./pipelined-batch.ts";
import type { PostgresSocket } from "./postgres-socket.ts";
import {
  type ConnectionCounters,
  makeConnectionCounters,
  type PreparedStatement,
  PreparedStatements,
} from "./prepared-statements.ts";
import { MessageEncoder } from "./protocol-messages.ts";
import type { ShareHolder } from "./statement.ts";

/** The time that a server gets to react to a cancel request before the connection is destroyed. */
const CANCEL_GRACE_MS = 5_000;

const LIFETIME_MS = 3_600_000;

/** The number of batches that may be in flight regardless of their expected duration. */
const ALWAYS_PIPELINED = 4;
/** The maximum number of batches per write; more on one connection would leave other backends idle. */
const MAX_BATCHES_PER_WRITE = 8;
/** The maximum expected duration of all batches in flight on one connection; further ones go to other connections, or wait. */
const MAX_EXPECTED_MS = 10;

/** SQLSTATE query_canceled. */
const QUERY_CANCELED = "57014";
/** SQLSTATE in_failed_sql_transaction. */
const IN_FAILED_TRANSACTION = "25P02";

/** PgBouncer sets this parameter for each of its clients, and `reset all` removes the value. No result depends on it. */
const APPLICATION_NAME = "application_name";

/** The capabilities of a connection to Postgres itself. */
const OF_POSTGRES: TransactionCapabilities = { isExplicit: false, keepsSettings: true, settingMode: "function" };

export type ConnectionEvents = {
  /** Reports that the connection may have room for another batch, or has retired. */
  ready(connection: PostgresConnection): void;
  lost(connection: PostgresConnection, reason: Error): void;
};

type ConnectionOptions = {
  /** The maximum number of batches in flight, while they are expected to be brief. */
  readonly depth: number;
  readonly maxPrepared: number;
  readonly transactions?: TransactionCapabilities;
  readonly counters?: ConnectionCounters;
};

/** One session. Batches are answered in the order in which they were sent. */
export class PostgresConnection {
  readonly openedAt = performance.now();
  /** The time at which the connection is replaced, because a backend's memory only grows. */
  readonly retiresAt = this.openedAt + LIFETIME_MS * (0.9 + Math.random() * 0.2);
  /** True while the connection is reserved for one transaction. */
  leased = false;
  /** True if the connection accepts no more batches and closes when idle. */
  retiring = false;
  /** The holder of the shares that the running statement occupies, if any. */
  shareHolder: ShareHolder | null = null;
  shareTakenAt = 0;

  readonly #socket: PostgresSocket;
  readonly #events: ConnectionEvents;
  readonly #depth: number;
  readonly #counters: ConnectionCounters;
  readonly #transactions: TransactionCapabilities;
  readonly #prepared: PreparedStatements;
  readonly #outbox = new MessageEncoder();
  readonly #inFlight = new FifoQueue<BatchProgress>();
  /** The sum of the expected durations of all batches in flight, in milliseconds. */
  #expectedMs = 0;
  /** The number of batches in flight that are still in the outbox. */
  #unsent = 0;
  /** The time since which the server works on the first batch in flight, or is idle. */
  #headSince = performance.now();
  #hasReceived = true;
  #quietSince = 0;
  #paused = false;
  #cancelWanted = false;
  #cancelling = false;
  /** True while an interrupt is pending: the cancelled batch may run again. No batch is added until all in flight have ended. */
  #interrupted = false;
  #isClosed = false;
  /** True while a ROLLBACK is in flight; the batches before it find a failed transaction. */
  #isRollingBack = false;
  /** The reported settings that differ from their initial values. */
  readonly #changedParameters = new Set<string>();

  constructor(
    socket: PostgresSocket,
    events: ConnectionEvents,
    { depth, maxPrepared, transactions = OF_POSTGRES, counters = makeConnectionCounters() }: ConnectionOptions,
  ) {
    this.#socket = socket;
    this.#events = events;
    this.#depth = depth;
    this.#transactions = transactions;
    this.#counters = counters;
    this.#prepared = new PreparedStatements(maxPrepared, counters);
    counters.opened++;
    socket.listen(this.#onMessage, (reason) => this.#lose(reason), this.#onLargeMessage);
  }

  get load(): number {
    return this.#inFlight.length;
  }

  get hasRoom(): boolean {
    const { length } = this.#inFlight;
    if (length >= this.#depth || (length >= ALWAYS_PIPELINED && this.#expectedMs >= MAX_EXPECTED_MS)) return false;
    return !this.leased && !this.retiring && !this.#cancelling && !this.#interrupted;
  }

  /** True if unsent batches are queued and another one can join their write. */
  get hasUnsentBatches(): boolean {
    return this.#unsent > 0 && this.#unsent < MAX_BATCHES_PER_WRITE;
  }

  get isIdle(): boolean {
    return this.#inFlight.length === 0 && !this.leased && !this.#cancelling;
  }

  /** True if the caller of the running batch is gone. */
  get isAbandoned(): boolean {
    return this.#inFlight.first()?.exchange.isAbandoned ?? false;
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  get idleSince(): number {
    return this.#headSince;
  }

  get preparedStatements(): number {
    return this.#prepared.size;
  }

  forgetStatements(): void {
    this.#prepared.dropAll();
  }

  /** The process ID of the backend. */
  get pid(): number {
    return this.#socket.processId;
  }

  /** The host and port of the server, or of the router in front of it. */
  get serverName(): string {
    return this.#socket.serverName;
  }

  runningStatements(now: number): RunningStatement[] {
    const session = { pid: this.pid, milliseconds: now - this.#headSince };
    return this.#inFlight.toArray().map(({ exchange }) => describeRunningStatement(session, exchange));
  }

  send(exchange: PipelinedBatch): void {
    if (this.#isClosed) exchange.end({ kind: "lost", cause: new Error("The connection is closed"), sent: false });
    else {
      const sequence = adaptSteps(exchange, this.#transactions);
      const progress = new BatchProgress(exchange, sequence, this.#write(exchange, sequence));
      this.#inFlight.push(progress);
      this.#expectedMs += progress.expected;
      this.#unsent++;
      // One write for all batches of this turn of the event loop; separate writes cost 10 to 15 %.
      if (this.#depth === 1 && !this.leased) this.#flush();
      else if (this.#unsent === 1) setImmediate(this.#flush);
    }
  }

  pause(): void {
    this.#paused = true;
    this.#socket.pause();
  }

  resume(): void {
    this.#paused = false;
    this.#socket.resume();
  }

  /**
   * A cancel request hits whatever statement the session runs when it arrives. So shared connections are never cancelled, and
   * this one has no room until the server has processed the cancel request.
   */
  cancel(): void {
    if (this.#depth > 1 || this.#inFlight.length === 0) return;
    this.#cancelWanted = true;
    if (!this.#cancelling) this.#beginCancel();
  }

  /** Returns the milliseconds for which the server has worked on the current batch. */
  busyFor(now: number): number {
    return this.#unsent < this.#inFlight.length ? now - this.#headSince : 0;
  }

  /** The holder of the share that the running batch takes if it runs long; null if the batch cannot be interrupted now. */
  get interruptible(): ShareHolder | null {
    return this.#cancelling ? null : (this.#inFlight.first()?.exchange.interruptible ?? null);
  }

  /**
   * Cancels the running batch in favor of others. If it ends before the cancel arrives, the cancel hits the next batch,
   * which runs again too.
   */
  interrupt(): void {
    this.#interrupted = true;
    this.#counters.interrupted++;
    this.#beginCancel();
  }

  #beginCancel(): void {
    this.#cancelling = true;
    // Postgres does not process a cancel while it blocks on a write to us.
    if (this.#paused) this.resume();
    // The cancel must follow the write of its batch.
    setImmediate(() => this.#sendCancel());
  }

  /** Called periodically: detects a server that stopped responding, and repeats a cancel that arrived too early. */
  checkSilence(now: number): void {
    const head = this.#inFlight.first();
    if (this.#hasReceived || this.#paused || !head) {
      this.#hasReceived = false;
      this.#quietSince = now;
    }
    if (!head) return;
    const overdue = now - this.#quietSince - head.exchange.responseTimeoutMs;
    if (this.#cancelWanted || overdue > 0) this.cancel();
    if (overdue > CANCEL_GRACE_MS) this.destroy(new Error("The server has stopped answering"));
  }

  async close(): Promise<void> {
    this.retiring = true;
    await this.#socket.end();
  }

  async #sendCancel(): Promise<void> {
    try {
      if (this.#inFlight.length > 0) await this.#socket.cancel();
      this.#cancelling = false;
      if (this.#inFlight.length === 0) this.#interrupted = false;
      if (!this.#isClosed) this.#events.ready(this);
    } catch (error) {
      // The cancel may still arrive, and hit the next batch.
      this.destroy(error as Error);
    }
  }

  #write(
    { wantsFields, fresh }: PipelinedBatch,
    { steps, main }: Pick<PipelinedBatch, "steps" | "main">,
  ): PreparedStatement[] {
    const outbox = this.#outbox;
    for (const name of this.#prepared.takeClosing()) outbox.closeStatement(name);
    return steps.map((step, index) => {
      const statement = this.#statementFor(step, fresh);
      if (!statement.sent) {
        outbox.parse(statement.name, step.shape.text);
        statement.sent = true;
      }
      outbox.bind(statement.name, step.values);
      if (wantsFields && index === main && !statement.fields) outbox.describePortal();
      outbox.execute();
      if (step.sync) outbox.sync();
      return statement;
    });
  }

  #statementFor({ shape, isUnprepared }: BatchStep, fresh: boolean): PreparedStatement {
    if (isUnprepared) return this.#prepared.unnamed(shape);
    return fresh ? this.#prepared.replace(shape) : this.#prepared.use(shape);
  }

  readonly #flush = (): void => {
    if (this.#isClosed || this.#unsent === 0) return;
    if (!this.#socket.isWritable()) {
      this.destroy(new Error("The connection was closed by the server"));
      return;
    }
    const now = performance.now();
    if (this.#unsent === this.#inFlight.length) this.#headSince = now;
    this.#quietSince = now;
    this.#unsent = 0;
    this.#socket.write(this.#outbox.take());
  };

  /** The first batch in flight, if the server can have received it. */
  get #sentHead(): BatchProgress | undefined {
    return this.#unsent < this.#inFlight.length ? this.#inFlight.first() : undefined;
  }

  /** Drops large notices and notifications: only their arrival counts. */
  readonly #onLargeMessage = (type: number, bytes: number): boolean => {
    if (type === message.NOTICE || type === message.NOTIFICATION) return false;
    const head = this.#sentHead;
    if (!head && type === message.DATA_ROW) throw unrequested();
    return head?.admits(type, bytes) ?? true;
  };

  readonly #onMessage = (type: number, buffer: Buffer, start: number, end: number, owned: boolean): void => {
    if (this.#isClosed) return;
    this.#hasReceived = true;
    const head = this.#sentHead;
    switch (type) {
      case message.CLOSE_COMPLETE:
      case message.NOTIFICATION:
      case message.NOTICE:
        break;
      case message.PARAMETER_STATUS:
        this.#onParameter(buffer, start, end);
        break;
      case message.ERROR:
        this.#onError(head, readError(buffer, start, end, errorClassOf(head?.step)));
        break;
      case message.READY_FOR_QUERY:
        if (!head) throw unrequested();
        if (head.sync()) this.#finish(head, readTransactionStatus(buffer, start, end));
        break;
      default:
        if (!head) throw unrequested();
        head.take(type, buffer, start, end, owned);
    }
  };

  /** Tracks the settings that a function changed for the session instead of for its transaction; such a session is not reused. */
  #onParameter(buffer: Buffer, start: number, end: number): void {
    const [name, value] = readPair(buffer, start, end);
    if (name === APPLICATION_NAME || this.#socket.parameters.get(name) === value) this.#changedParameters.delete(name);
    else this.#changedParameters.add(name);
  }

  #onError(head: BatchProgress | undefined, error: DatabaseError): void {
    if (!head || isFatal(error)) this.destroy(error);
    else {
      const stale = head.fail(error);
      if (stale) this.#prepared.drop(stale);
    }
  }

  #finish(progress: BatchProgress, status: number): void {
    const { exchange, main, expected, prepared, error, isStale } = progress;
    this.#inFlight.shift();
    this.#expectedMs = this.#inFlight.length === 0 ? 0 : this.#expectedMs - expected;
    this.#cancelWanted = false;
    if (this.#paused) this.resume();
    const now = performance.now();
    const milliseconds = now - this.#headSince;
    this.#headSince = now;
    this.#counters.batches++;
    this.#counters.milliseconds += milliseconds;
    if (error) {
      for (const statement of prepared) if (!statement.ready) this.#prepared.forget(statement);
      if (progress.failedStatement !== null) setFailedStatement(error, progress.failedStatement);
    }

    const isUnstarted = error !== null && this.#isUnstarted(progress);
    const isRolledBack = status === message.FAILED && (progress.leavesOpen || this.#isRollingBack);
    const isExpected = exchange.keepsTransaction ? error !== null || status !== message.IDLE : status === message.IDLE;
    const isAstray = !isExpected && !isRolledBack;
    const failure = error ?? (isAstray ? unexpectedTransactionState() : null);
    const fields = exchange.wantsFields ? prepared[main]!.fields : null;
    const isInterrupted = this.#interrupted && (error as DatabaseError | null)?.code === QUERY_CANCELED;
    if (this.#inFlight.length === 0 && !this.#cancelling) this.#interrupted = false;
    if (isUnstarted) exchange.end({ kind: "lost", cause: error, sent: false });
    else if (failure) {
      const report = () => exchange.end({ kind: "refused", milliseconds, error: failure, isStale, isInterrupted });
      if (isRolledBack) this.#rollBack(progress, report);
      else report();
    } else exchange.end({ kind: "done", milliseconds, fields });

    // The batches after it ran inside the transaction that it left open, so they fail with it.
    if (isAstray) this.destroy(unexpectedTransactionState());
    else {
      if (status === message.IDLE && this.#changedParameters.size > 0) this.retiring = true;
      this.#events.ready(this);
    }
  }

  /** True if the batch was sent before the ROLLBACK of a failed batch: its BEGIN was refused, and nothing ran. */
  #isUnstarted({ failedStep, error }: BatchProgress): boolean {
    return this.#isRollingBack && failedStep === 0 && (error as DatabaseError).code === IN_FAILED_TRANSACTION;
  }

  /** Reports the error after the transaction and its locks have ended. */
  #rollBack({ steps, failedStep }: BatchProgress, report: () => void): void {
    steps[failedStep]?.shape.failed();
    if (this.#isRollingBack) {
      report();
      return;
    }
    this.#isRollingBack = true;
    this.#sendRollback(report);
  }

  #sendRollback(report: () => void): void {
    this.send(
      makeRollback(({ kind }) => {
        // A late cancel has hit the ROLLBACK instead of its statement: the transaction is still open.
        if (kind === "refused") {
          this.#sendRollback(report);
          return;
        }
        this.#isRollingBack = false;
        report();
      }),
    );
  }

  destroy(reason: Error): void {
    this.#socket.destroy();
    this.#lose(reason);
  }

  #lose(reason: Error): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    if (!this.retiring) this.#counters.lost++;
    const lostBatches = this.#inFlight.takeAll();
    const sent = lostBatches.length - this.#unsent;
    this.#events.lost(this, reason);
    for (const [index, { exchange, error }] of lostBatches.entries()) {
      // A failed batch cannot have been committed.
      if (error) exchange.end({ kind: "refused", milliseconds: 0, error, isStale: false, isInterrupted: false });
      else exchange.end({ kind: "lost", cause: reason, sent: index < sent });
    }
  }
}

/** A statement that was sent to Postgres and has not ended yet. */
export type RunningStatement = {
  /** The process ID as in `pg_stat_activity`; meaningless behind a pooler. */
  readonly pid: number;
  /** The time for which the session has worked on its current batch. */
  readonly milliseconds: number;
  readonly role: string | null;
  readonly interface: string | null;
  readonly request: string | null;
  /** The text, without parameter values. */
  readonly statement: string;
};

function unrequested(): Error {
  return new Error("The server answered what nobody asked");
}

/** Returns the error class for an error of this step. */
function errorClassOf(step: BatchStep | undefined): typeof DatabaseError | undefined {
  if (step?.isContext) return ContextError;
  return step?.isPreceding ? PrecedingStatementError : undefined;
}

type SessionActivity = { readonly pid: number; readonly milliseconds: number };

function describeRunningStatement(
  { pid, milliseconds }: SessionActivity,
  { steps, main }: PipelinedBatch,
): RunningStatement {
  const context = steps.find(({ isContext }) => isContext);
  const settingOf = (name: string): string | null => {
    const parameter = context?.shape.text.match(new RegExp(`set_config\\('${name}',\\$(\\d+),`))?.[1];
    return parameter === undefined ? null : String(context!.values[Number(parameter) - 1]);
  };
  return {
    pid,
    milliseconds: Math.round(milliseconds),
    role: settingOf("role"),
    interface: settingOf("request\\.interface"),
    request: settingOf("request\\.id"),
    statement: steps[main]!.shape.text,
  };
}
