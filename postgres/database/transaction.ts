import type { ApiError } from "#runtime";
import { readCommand } from "../client/server-messages.ts";
import {
  type BatchStep,
  constraintsStep,
  endingStep,
  type GroupedStatement,
  type IsolationLevel,
  isOwnStep,
  makeGroupSteps,
  makeOpeningSteps,
  makeTimeoutStep,
  type StatementLimits,
  type StepSequence,
  type TransactionEnd,
  withEnd,
} from "./batch-steps.ts";
import type { PostgresConnection } from "./connection.ts";
import type { ConnectionPool } from "./connection-pool.ts";
import {
  changedButResponseTooLarge,
  connectionLost,
  failedStatementOf,
  outcomeUnknown,
  transactionFailed,
} from "./database-errors.ts";
import { callerKeyOf } from "./fair-sharing.ts";
import { BECOME_CALLER, BECOME_LOGIN } from "./login-role.ts";
import type { StatementObservation } from "./observe-statements.ts";
import {
  type BatchOutcome,
  type PipelinedBatch,
  type ResultCollector,
  statementTimeoutFor,
} from "./pipelined-batch.ts";
import { type MemoryAllowance, type ResponseBudget, UNLIMITED } from "./response-budget.ts";
import { CollectedResults } from "./result-collectors.ts";
import { suspectsStandby } from "./standby-check.ts";
import type { ResultRow, Statement, StatementContext, StatementResult } from "./statement.ts";
import { combinedPacing, type StatementPacing, type StatementShape, type StatementShapes } from "./statement-shape.ts";

/** The time after which the server ends the session of an idle transaction, which holds locks and keeps old rows alive. */
const IDLE_TIMEOUT_MS = 60_000;

/** SQLSTATE in_failed_sql_transaction. */
const IN_FAILED_TRANSACTION = "25P02";

type QueryOptions = {
  /** True if the result includes the names and types of the columns. */
  readonly fields?: boolean;
  /** True if the next statement follows this one: an error of this one is a PrecedingStatementError. */
  readonly isPreceding?: boolean;
  /** True for a savepoint and the rollback to it: after an error, no setting may come before that. */
  readonly isSavepoint?: boolean;
};

export type QueryInTransaction = (statement: Statement, options?: QueryOptions) => Promise<StatementResult>;

type QueryTogetherOptions = {
  /** The end of the transaction in the same write; null leaves it open. */
  readonly end?: TransactionEnd | null;
  readonly budget?: ResponseBudget | undefined;
};

/** Sends several statements in one write. */
export type QueryTogether = (
  statements: readonly GroupedStatement[],
  options?: QueryTogetherOptions,
) => Promise<StatementResult<string | Buffer | null>[]>;

type TransactionRequest = {
  readonly pool: ConnectionPool;
  readonly isAnonymous: boolean;
  readonly shapes: StatementShapes;
  readonly context: StatementContext;
  readonly limits: StatementLimits;
  readonly isolation: IsolationLevel | undefined;
  /** True if the statement timeout limits all statements and the commit together. */
  readonly isTimedAsOne: boolean;
  readonly responseTimeoutMs: number;
  /** Returns the time until which the transaction may wait for a connection. */
  readonly deadline: () => number;
  /** Makes the memory budget of each query. Nothing is committed yet, so writes can be refused too. */
  readonly makeBudget: () => ResponseBudget;
  /** Adds details to an error. */
  readonly explain: (error: unknown, relations: readonly string[]) => Promise<unknown>;
  /** Observes statements; null if there are no observers. */
  readonly watch?: (statements: readonly Statement[]) => StatementObservation | null;
};

export async function runTransaction<T>(
  request: TransactionRequest,
  work: (query: QueryInTransaction, queryTogether: QueryTogether) => Promise<T>,
): Promise<T> {
  const transaction = new OpenTransaction(request);
  try {
    const result = await work(
      (statement, options) => transaction.query(statement, options),
      (statements, options) => transaction.queryTogether(statements, options),
    );
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
  pace: StatementPacing,
): Promise<PostgresConnection> {
  return new Promise((resolve, reject) => {
    const start = (connection: PostgresConnection) => {
      connection.leased = true;
      resolve(connection);
    };
    const { relations } = pace;
    const claimant = {
      caller: callerKeyOf(context),
      isAnonymous,
      relations,
      kind: pace,
      isLong: false,
      isBrief: false,
      isShort: false,
    };
    pool.submit({ ...claimant, expires: deadline(), start, refuse: reject });
  });
}

type TransactionBatchOptions = Partial<Pick<PipelinedBatch, "wantsFields" | "fresh" | "keepsTransaction">>;

type GroupOptions = QueryTogetherOptions & QueryOptions;

/** Statements that are sent together, with their shapes and options. */
type StatementGroup = {
  readonly steps: readonly BatchStep[];
  readonly shapes: readonly StatementShape[];
  readonly collector: CollectedResults<string | Buffer | null> | CollectedResults<string | null>;
  readonly options: GroupOptions;
};

type BatchReply = { readonly outcome: BatchOutcome; readonly bytes: number };

class OpenTransaction {
  readonly #request: TransactionRequest;
  /** Null until the first statement, which selects the share of the pool. */
  #connection: PostgresConnection | null = null;
  /** The response to BEGIN, the settings and the first statements, which are one batch. */
  #first: Promise<BatchReply> | null = null;
  #begunAt = 0;
  /** The context whose settings apply at present. */
  #context: StatementContext;
  #failure: Error | null = null;
  #isOver = false;
  #isEnded = false;

  constructor(request: TransactionRequest) {
    this.#request = request;
    this.#context = withIdleTimeout(request.context);
  }

  async query(statement: Statement, options: QueryOptions = {}): Promise<StatementResult> {
    const collector = CollectedResults.ofStrings(1);
    const { outcome } = await this.#runGroup([statement], collector, options);
    return { ...collector.results[0]!, fields: outcome.kind === "done" ? outcome.fields : null };
  }

  async queryTogether(
    statements: readonly GroupedStatement[],
    options: QueryTogetherOptions = {},
  ): Promise<StatementResult<string | Buffer | null>[]> {
    if (statements.length === 0) throw new TypeError("A group has at least one statement");
    const collector = CollectedResults.withBuffers(statements.length);
    await this.#runGroup(statements, collector, options);
    return collector.results;
  }

  async #runGroup(
    statements: readonly GroupedStatement[],
    collector: StatementGroup["collector"],
    options: GroupOptions,
  ): Promise<BatchReply> {
    const { context, shapes: known } = this.#request;
    const shapes = statements.map(({ text }) => known.shapeFor(context.role, text));
    const watch = this.#request.watch?.(statements);
    try {
      const reply = await this.#sendGroup(statements, { shapes, collector, options });
      if (this.#connection) watch?.startedOn(this.#connection.pid);
      if (reply.outcome.kind !== "lost") watch?.took(reply.outcome.milliseconds);
      this.#requireDone(reply.outcome, options.end ?? null);
      watch?.rows(collector.rowCount, reply.bytes);
      watch?.finish(null);
      return reply;
    } catch (error) {
      watch?.finish(error);
      const { relations } = shapes[failedStatementOf(error) ?? -1] ?? combinedPacing(shapes);
      throw await this.#request.explain(error, relations);
    }
  }

  async #sendGroup(statements: readonly GroupedStatement[], group: Omit<StatementGroup, "steps">): Promise<BatchReply> {
    if (this.#isOver) throw new Error("The transaction is over; its queries must be awaited inside of it");
    if (group.options.end) this.#isOver = true;
    const guarded = statements.map((statement) =>
      statement.context ? { ...statement, context: withIdleTimeout(statement.context) } : statement,
    );
    if (!this.#first) {
      // The transaction begins with the settings of its first statement.
      this.#context = guarded[0]!.context ?? this.#context;
      const opening = this.#context;
      this.#first = this.#begin({ ...group, steps: this.#groupSteps(guarded, group.options, []) }, opening);
      return this.#first;
    }
    // Outside the transaction, the statement would run as the login instead of the caller.
    await this.#requireBegun();
    const timeout = group.options.isSavepoint ? [] : this.#remainingTime();
    return this.#send({ ...group, steps: this.#groupSteps(guarded, group.options, timeout) }, timeout);
  }

  #groupSteps(
    statements: readonly GroupedStatement[],
    { isPreceding }: QueryOptions,
    timeout: readonly BatchStep[],
  ): BatchStep[] {
    const { context, shapes, limits } = this.#request;
    const shapeOf = ({ text }: Statement) => shapes.shapeFor(context.role, text);
    const steps = makeGroupSteps(statements, this.#context, shapeOf, limits, timeout);
    this.#context = statements.findLast((statement) => statement.context)?.context ?? this.#context;
    return isPreceding ? steps.map((step) => ({ ...step, isPreceding })) : steps;
  }

  /** Sets the remaining statement timeout, if that limits the whole transaction. */
  #remainingTime(): BatchStep[] {
    const { isTimedAsOne, context, limits } = this.#request;
    const limit = isTimedAsOne ? statementTimeoutFor(context, limits) : Number.POSITIVE_INFINITY;
    if (limit === Number.POSITIVE_INFINITY) return [];
    return [makeTimeoutStep(Math.max(1, Math.ceil(limit - (performance.now() - this.#begunAt))))];
  }

  async commit(): Promise<void> {
    this.#isOver = true;
    if (!this.#first || this.#isEnded) return;
    await this.#requireBegun();
    this.#isEnded = true;
    let command = "";
    const collector = {
      row: () => {},
      complete: (buffer: Buffer, start: number, end: number) => {
        command = readCommand(buffer, start, end);
      },
    };
    const checks = this.#request.isTimedAsOne ? [...this.#remainingTime(), constraintsStep()] : [];
    const outcome = await this.#sendBatch(endingBatch("commit", checks), collector, { keepsTransaction: false });
    if (outcome.kind === "lost" && outcome.sent && !this.#request.limits.readOnly) throw outcomeUnknown(outcome.cause);
    // Postgres answers COMMIT with ROLLBACK if a statement had failed.
    if (outcome.kind !== "done" || command !== "COMMIT")
      throw await this.#request.explain(this.#failure ?? transactionFailed(), []);
  }

  async rollBack(): Promise<void> {
    this.#isOver = true;
    if (!this.#first || this.#isEnded) return;
    await this.#first.catch(() => {});
    // If the connection is lost, Postgres rolls back.
    if (this.#connection) await this.#sendRollback();
  }

  /** Returns the error for a statement that was refused because its server is a standby now: nothing was changed. */
  async findStandbyError(): Promise<ApiError | null> {
    const { limits, pool } = this.#request;
    const connection = this.#connection;
    if (!connection || limits.readOnly || !suspectsStandby(this.#failure)) return null;
    const failure = this.#failure;
    await this.#sendRollback();
    return (await pool.leavesStandby(connection)) ? connectionLost(failure) : null;
  }

  release(): void {
    if (this.#connection) this.#request.pool.release(this.#connection);
    this.#connection = null;
  }

  /**
   * Begins with the first statements. No result has been returned yet, so it starts over if the connection is lost or a
   * prepared statement is outdated.
   */
  async #begin(group: StatementGroup, context: StatementContext): Promise<BatchReply> {
    const pace = group.shapes.length === 1 ? group.shapes[0]! : combinedPacing(group.shapes);
    this.#connection = await leaseConnection(this.#request, pace);
    this.#begunAt = performance.now();
    const { limits, isolation } = this.#request;
    const opening = makeOpeningSteps(context, limits, isolation);
    const reply = await this.#send(group, opening);
    const { outcome } = reply;
    if (outcome.kind === "lost" && !(outcome.sent && group.options.end === "commit")) {
      this.release();
      this.#connection = await leaseConnection(this.#request, pace);
    } else if (outcome.kind === "refused" && outcome.isStale) {
      await this.#sendRollback();
    } else if (await this.findStandbyError()) {
      this.release();
      this.#connection = await leaseConnection(this.#request, pace);
    } else return reply;
    this.#failure = null;
    group.collector.restart();
    return this.#send(group, opening, { fresh: true });
  }

  async #requireBegun(): Promise<void> {
    const { outcome } = await this.#first!;
    if (outcome.kind !== "done") throw this.#failure!;
  }

  #requireDone(outcome: BatchOutcome, end: TransactionEnd | null): void {
    if (outcome.kind === "done") return;
    const isUnknown = outcome.kind === "lost" && outcome.sent && end === "commit" && !this.#request.limits.readOnly;
    throw isUnknown ? outcomeUnknown(outcome.cause) : this.#failure!;
  }

  async #send(
    { steps, collector, options }: StatementGroup,
    opening: readonly BatchStep[],
    { fresh = false }: TransactionBatchOptions = {},
  ): Promise<BatchReply> {
    const { end = null, fields: wantsFields = false, isPreceding = false } = options;
    const own = options.budget ? null : this.#request.makeBudget();
    let bytes = 0;
    const budget = options.budget ?? own!;
    const counted: MemoryAllowance = {
      take: (count) => {
        bytes += count;
        return budget.take(count);
      },
      giveBack: (count) => budget.giveBack(count),
      refusal: () => (end === "commit" ? changedButResponseTooLarge() : budget.refusal()),
    };
    const skipped = isPreceding ? 0 : steps.findIndex(isOwnStep);
    this.#isEnded = end !== null;
    const sequence = {
      steps: [...opening, ...withEnd(steps, end)],
      main: opening.length + skipped,
      mainCount: steps.length - skipped,
    };
    const settings = { wantsFields, fresh, keepsTransaction: end === null };
    const outcome = await this.#sendBatch(sequence, collector, settings, counted);
    own?.giveAllBack();
    return { outcome, bytes };
  }

  async #sendRollback(): Promise<void> {
    const nothing = { row: () => {}, complete: () => {} };
    await this.#sendBatch(endingBatch("rollback"), nothing, { keepsTransaction: false });
  }

  #sendBatch(
    sequence: StepSequence,
    collector: ResultCollector,
    options: TransactionBatchOptions,
    allowance: MemoryAllowance = UNLIMITED,
  ): Promise<BatchOutcome> {
    const { wantsFields = false, fresh = false, keepsTransaction = true } = options;
    const { responseTimeoutMs } = this.#request;
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
        ...sequence,
        collector,
        wantsFields,
        fresh,
        keepsTransaction,
        responseTimeoutMs,
        expected: 0,
        interruptible: null,
        isAbandoned: false,
        admits,
        end,
      });
    });
  }

  /** Keeps the first error, and ignores the errors that follow from it. */
  #noteFailure(outcome: BatchOutcome): void {
    if (outcome.kind === "done") return;
    const error = outcome.kind === "lost" ? connectionLost(outcome.cause) : outcome.error;
    const follows =
      outcome.kind === "lost" ? !outcome.sent : (error as { code?: string }).code === IN_FAILED_TRANSACTION;
    if (!follows || !this.#failure) this.#failure = error;
  }
}

function endingBatch(how: "commit" | "rollback", checks: readonly BatchStep[] = []): StepSequence {
  return { steps: [...checks, endingStep(how)], main: checks.length, mainCount: 1 };
}

function withIdleTimeout(context: StatementContext): StatementContext {
  const limit = ["idle_in_transaction_session_timeout", String(IDLE_TIMEOUT_MS)] as const;
  return { ...context, settings: [limit, ...context.settings] };
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
