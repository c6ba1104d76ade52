import type { ApiError } from "../errors.ts";
import { readCommand } from "../pg-client/server-messages.ts";
import type { PostgresConnection } from "./connection.ts";
import type { ConnectionPool } from "./connection-pool.ts";
import { connectionLost, outcomeUnknown, transactionFailed } from "./database-errors.ts";
import { callerKeyOf } from "./fair-sharing.ts";
import type { StatementObservation } from "./observe-statements.ts";
import {
  type BatchOutcome,
  type BatchStep,
  constraintsStep,
  endingStep,
  type IsolationLevel,
  makeOpeningSteps,
  makeStatementStep,
  makeTimeoutStep,
  type PipelinedBatch,
  type ResultCollector,
  type StatementLimits,
  statementTimeoutFor,
} from "./pipelined-batch.ts";
import { type MemoryAllowance, type ResponseBudget, UNLIMITED } from "./response-budget.ts";
import { CollectedRows } from "./result-collectors.ts";
import { suspectsStandby } from "./standby-check.ts";
import type { ResultRow, Statement, StatementContext, StatementResult } from "./statement.ts";
import type { StatementShape, StatementShapes } from "./statement-shape.ts";

/** The caller's function may have changed the role, so the current role is saved and restored. */
const BECOME_LOGIN: Statement = {
  text: `select pg_catalog.set_config('engine.role', pg_catalog.current_setting('role'), true),
    pg_catalog.set_config('role', 'none', true)`,
  values: [],
};
const BECOME_CALLER: Statement = {
  text: "select pg_catalog.set_config('role', pg_catalog.current_setting('engine.role'), true)",
  values: [],
};

/** An idle transaction holds locks and keeps old rows alive; the server ends its session. */
const IDLE_TIMEOUT_MS = 60_000;

/** SQLSTATE in_failed_sql_transaction. */
const IN_FAILED_TRANSACTION = "25P02";

type QueryOptions = {
  /** Whether to return the names and types of the columns. */
  readonly fields?: boolean;
  /** The statement that the next one is sent after: its error is a PrecedingStatementError. */
  readonly isPreceding?: boolean;
};

export type QueryInTransaction = (statement: Statement, options?: QueryOptions) => Promise<StatementResult>;

type TransactionRequest = {
  readonly pool: ConnectionPool;
  readonly isAnonymous: boolean;
  readonly shapes: StatementShapes;
  readonly context: StatementContext;
  readonly limits: StatementLimits;
  readonly isolation: IsolationLevel | undefined;
  /** Whether the statement timeout holds for all statements and the commit together. */
  readonly isTimedAsOne: boolean;
  readonly responseTimeoutMs: number;
  /** Until when it may wait for a connection. */
  readonly deadline: () => number;
  /** Makes the memory budget of each query. Nothing is committed yet, so writes can be refused too. */
  readonly makeBudget: () => ResponseBudget;
  /** Adds details to an error. */
  readonly explain: (error: unknown, shape: StatementShape) => Promise<unknown>;
  /** Null if statements are not observed. */
  readonly watch?: (statement: Statement) => StatementObservation | null;
};

export async function runTransaction<T>(
  request: TransactionRequest,
  work: (query: QueryInTransaction) => Promise<T>,
): Promise<T> {
  const transaction = new OpenTransaction(request);
  try {
    const result = await work((statement, options) => transaction.query(statement, options));
    await transaction.commit();
    return result;
  } catch (error) {
    await transaction.rollBack();
    throw (await transaction.findStandbyError()) ?? error;
  } finally {
    transaction.release();
  }
}

function leaseConnection(
  { pool, context, isAnonymous, deadline }: TransactionRequest,
  { shape }: BatchStep,
): Promise<PostgresConnection> {
  return new Promise((resolve, reject) => {
    const start = (connection: PostgresConnection) => {
      connection.leased = true;
      resolve(connection);
    };
    const { relations } = shape;
    const claimant = {
      caller: callerKeyOf(context),
      isAnonymous,
      relations,
      kind: shape,
      isLong: false,
      isBrief: false,
    };
    pool.submit({ ...claimant, expires: deadline(), start, refuse: reject });
  });
}

type TransactionBatchOptions = Partial<Pick<PipelinedBatch, "wantsFields" | "fresh" | "keepsTransaction">>;

type BatchReply = {
  readonly outcome: BatchOutcome;
  readonly rows: CollectedRows<string | null>;
  readonly bytes: number;
};

class OpenTransaction {
  readonly #request: TransactionRequest;
  /** Null until the first statement, which selects the share of the pool. */
  #connection: PostgresConnection | null = null;
  /** The response to BEGIN, the settings and the first statement, which are one batch. */
  #first: Promise<BatchReply> | null = null;
  #begunAt = 0;
  #failure: Error | null = null;
  #isOver = false;
  #isEnded = false;

  constructor(request: TransactionRequest) {
    this.#request = request;
  }

  async query(statement: Statement, options: QueryOptions = {}): Promise<StatementResult> {
    const { context, shapes } = this.#request;
    const shape = shapes.shapeFor(context.role, statement.text);
    const watch = this.#request.watch?.(statement);
    try {
      const reply = await this.#runStep(shape, statement, options);
      if (this.#connection) watch?.startedOn(this.#connection.pid);
      if (reply.outcome.kind !== "lost") watch?.took(reply.outcome.milliseconds);
      const result = this.#resultOf(reply);
      watch?.rows(result.rows.length, reply.bytes);
      watch?.finish(null);
      return result;
    } catch (error) {
      watch?.finish(error);
      throw await this.#request.explain(error, shape);
    }
  }

  async #runStep(
    shape: StatementShape,
    statement: Statement,
    { fields: wantsFields = false, isPreceding = false }: QueryOptions,
  ): Promise<BatchReply> {
    if (this.#isOver) throw new Error("The transaction is over; its queries must be awaited inside of it");
    const plain = makeStatementStep(shape, statement, { sync: true });
    const step: BatchStep = isPreceding ? { ...plain, isPreceding } : plain;
    if (!this.#first) {
      this.#first = this.#begin(step, wantsFields);
      return this.#first;
    }
    // Outside the transaction it would run as the login instead of the caller.
    await this.#requireBegun();
    return this.#send(this.#timed(step), { wantsFields });
  }

  /** The step with what is left of the statement timeout, if that holds for the whole transaction. */
  #timed(step: BatchStep): BatchStep[] {
    const { isTimedAsOne, context, limits } = this.#request;
    const limit = isTimedAsOne ? statementTimeoutFor(context, limits) : Number.POSITIVE_INFINITY;
    if (limit === Number.POSITIVE_INFINITY) return [step];
    return [makeTimeoutStep(Math.max(1, Math.ceil(limit - (performance.now() - this.#begunAt)))), step];
  }

  async commit(): Promise<void> {
    this.#isOver = true;
    if (!this.#first) return;
    await this.#requireBegun();
    this.#isEnded = true;
    let command = "";
    const collector = {
      row: () => {},
      complete: (buffer: Buffer, start: number, end: number) => {
        command = readCommand(buffer, start, end);
      },
    };
    const commit = endingStep("commit");
    const steps = this.#request.isTimedAsOne ? [...this.#timed(constraintsStep()), commit] : [commit];
    const outcome = await this.#sendBatch(steps, collector, { keepsTransaction: false });
    if (outcome.kind === "lost" && outcome.sent && !this.#request.limits.readOnly) throw outcomeUnknown(outcome.cause);
    // Postgres answers COMMIT with ROLLBACK when a statement had failed.
    if (outcome.kind !== "done" || command !== "COMMIT") throw this.#failure ?? transactionFailed();
  }

  async rollBack(): Promise<void> {
    this.#isOver = true;
    if (!this.#first || this.#isEnded) return;
    await this.#first.catch(() => {});
    // If the connection is lost, Postgres rolls back.
    if (this.#connection) await this.#send([endingStep("rollback")], { keepsTransaction: false });
  }

  /** The error for a statement that was refused because its server is a standby by now: nothing was changed. */
  async findStandbyError(): Promise<ApiError | null> {
    const { limits, pool } = this.#request;
    const connection = this.#connection;
    if (!connection || limits.readOnly || !suspectsStandby(this.#failure)) return null;
    const failure = this.#failure;
    await this.#send([endingStep("rollback")], { keepsTransaction: false });
    return (await pool.leavesStandby(connection)) ? connectionLost(failure) : null;
  }

  release(): void {
    if (this.#connection) this.#request.pool.release(this.#connection);
    this.#connection = null;
  }

  /**
   * Begins with the first statement. No result was returned yet, so it starts over if the connection is lost or the
   * prepared statement is outdated.
   */
  async #begin(step: BatchStep, wantsFields: boolean): Promise<BatchReply> {
    this.#connection = await leaseConnection(this.#request, step);
    this.#begunAt = performance.now();
    const steps = [...this.#openingSteps(), step];
    const reply = await this.#send(steps, { wantsFields });
    const { outcome } = reply;
    if (outcome.kind === "lost") {
      this.release();
      this.#connection = await leaseConnection(this.#request, step);
    } else if (outcome.kind === "refused" && outcome.isStale) {
      await this.#send([endingStep("rollback")], { keepsTransaction: false });
    } else if (await this.findStandbyError()) {
      this.release();
      this.#connection = await leaseConnection(this.#request, step);
    } else return reply;
    this.#failure = null;
    return this.#send(steps, { wantsFields, fresh: true });
  }

  async #requireBegun(): Promise<void> {
    const { outcome } = await this.#first!;
    if (outcome.kind !== "done") throw this.#failure!;
  }

  #resultOf({ outcome, rows }: BatchReply): StatementResult {
    if (outcome.kind !== "done") throw this.#failure!;
    return { rows: rows.rows, rowCount: rows.rowCount, fields: outcome.fields };
  }

  async #send(steps: readonly BatchStep[], options: TransactionBatchOptions): Promise<BatchReply> {
    const rows = CollectedRows.ofStrings();
    const budget = this.#request.makeBudget();
    const outcome = await this.#sendBatch(steps, rows, options, budget);
    const bytes = budget.giveAllBack();
    return { outcome, rows, bytes };
  }

  #sendBatch(
    steps: readonly BatchStep[],
    collector: ResultCollector,
    options: TransactionBatchOptions,
    allowance: MemoryAllowance = UNLIMITED,
  ): Promise<BatchOutcome> {
    const { wantsFields = false, fresh = false, keepsTransaction = true } = options;
    const { responseTimeoutMs } = this.#request;
    const main = steps.length - 1;
    let excess: ApiError | null = null;
    // Does not cancel: the cancel might hit the COMMIT or ROLLBACK.
    const admits = (bytes: number): boolean => {
      if (!excess && !allowance.take(bytes)) excess = allowance.refusal();
      return !excess;
    };
    return new Promise((resolve) => {
      const end = (batchOutcome: BatchOutcome) => {
        const outcome: BatchOutcome =
          excess && batchOutcome.kind === "done"
            ? { ...batchOutcome, kind: "refused", error: excess, isStale: false, isInterrupted: false }
            : batchOutcome;
        this.#noteFailure(outcome);
        resolve(outcome);
      };
      this.#connection!.send({
        steps,
        main,
        mainCount: 1,
        collector,
        wantsFields,
        fresh,
        keepsTransaction,
        responseTimeoutMs,
        expected: 0,
        isInterruptible: false,
        isAbandoned: false,
        admits,
        end,
      });
    });
  }

  /** Keeps the first error, not its consequences. */
  #noteFailure(outcome: BatchOutcome): void {
    if (outcome.kind === "done") return;
    const error = outcome.kind === "lost" ? connectionLost(outcome.cause) : outcome.error;
    const follows =
      outcome.kind === "lost" ? !outcome.sent : (error as { code?: string }).code === IN_FAILED_TRANSACTION;
    if (!follows || !this.#failure) this.#failure = error;
  }

  #openingSteps(): BatchStep[] {
    const { context, limits, isolation } = this.#request;
    const guard = ["idle_in_transaction_session_timeout", String(IDLE_TIMEOUT_MS)] as const;
    return makeOpeningSteps({ ...context, settings: [guard, ...context.settings] }, limits, isolation);
  }
}

/** Runs a statement in an open transaction. */
export type RunStatement = (statement: Statement) => Promise<{ readonly rows: readonly ResultRow[] }>;

/**
 * Runs statements in the caller's transaction as the login, for work that the caller has no privileges for. Deferred
 * triggers run at commit and must see the caller's role, so it is restored at once.
 */
export function asLogin(run: RunStatement): RunStatement {
  return async (statement) => {
    // Statements are pipelined; only the first one of a transaction is awaited. If one fails, the following ones and the transaction fail
    // too.
    const [, result] = await Promise.all([run(BECOME_LOGIN), run(statement), run(BECOME_CALLER)]);
    return result;
  };
}
