import type { ApiError } from "#runtime";
import type { AbortLike } from "#runtime/concurrency";
import type { BatchStep } from "./batch-steps.ts";
import type { PostgresConnection } from "./connection.ts";
import type { ConnectionPool, ConnectionRequest } from "./connection-pool.ts";
import { changedButResponseTooLarge, connectionLost, isQueryCanceled, outcomeUnknown } from "./database-errors.ts";
import { callerKeyOf } from "./fair-sharing.ts";
import type { StatementObservation } from "./observe-statements.ts";
import type { BatchOutcome, ExecutionCallbacks, PipelinedBatch, RestartableCollector } from "./pipelined-batch.ts";
import type { MemoryAllowance } from "./response-budget.ts";
import { isDeclaredReadOnly, suspectsStandby } from "./standby-check.ts";
import type { ShareHolder, StatementContext } from "./statement.ts";
import type { StatementPacing } from "./statement-shape.ts";

type PrimaryPools = { readonly pool: ConnectionPool; readonly slowPool: ConnectionPool };

export type ChosenPools = {
  readonly pool: ConnectionPool;
  /** The pool that continues interrupted reads. */
  readonly slowPool: ConnectionPool | undefined;
  readonly primary: PrimaryPools | undefined;
};

export type StatementRequest = {
  readonly pace: StatementPacing;
  readonly context: Pick<StatementContext, "role" | "callerKey">;
  readonly isAnonymous: boolean;
  readonly steps: readonly BatchStep[];
  readonly main: number;
  readonly mainCount: number;
  readonly wantsFields: boolean;
  readonly responseTimeoutMs: number;
  /** True if the statement cannot have changed anything, so it may run again if its response was lost. */
  readonly readOnly: boolean;
  /** The memory limit of the response. */
  readonly allowance: MemoryAllowance;
  readonly expires: number;
  readonly signal: AbortLike | undefined;
  /** The pool that continues the statement after an interruption. */
  readonly slowPool?: ConnectionPool | undefined;
  /** The pools of the primary, if the request is sent to a replica first. */
  readonly primary?: PrimaryPools | undefined;
  readonly observation?: StatementObservation | null;
};

type OutcomeOfKind<Kind> = Extract<BatchOutcome, { kind: Kind }>;

/** One transaction of one caller. It waits for a connection of its pool, and runs again where that is safe. */
export class StatementExecution implements ConnectionRequest, PipelinedBatch {
  readonly steps: readonly BatchStep[];
  readonly main: number;
  readonly mainCount: number;
  readonly wantsFields: boolean;
  readonly responseTimeoutMs: number;
  readonly expires: number;
  readonly expected: number;
  readonly keepsTransaction = false;
  readonly isAnonymous: boolean;
  readonly collector: RestartableCollector;
  /** True on the second run. */
  fresh = false;
  waitsSince = 0;

  #pool: ConnectionPool;
  #primary: PrimaryPools | undefined;
  #slowPool: ConnectionPool | undefined;
  readonly #pace: StatementPacing;
  readonly #context: StatementRequest["context"];
  #caller: string | null = null;
  /** True if the statement was interrupted in the slow pool. */
  #isLong = false;
  readonly #readOnly: boolean;
  readonly #callbacks: ExecutionCallbacks;
  readonly #signal: AbortLike | undefined;
  readonly #allowance: MemoryAllowance;
  readonly #observation: StatementObservation | null;
  /** The bytes taken from the allowance. */
  #heldBytes = 0;
  #budgetError: ApiError | null = null;
  #connection: PostgresConnection | null = null;
  #lostAt: number | null = null;

  constructor(
    pool: ConnectionPool,
    request: StatementRequest,
    collector: RestartableCollector,
    callbacks: ExecutionCallbacks,
  ) {
    this.steps = request.steps;
    this.main = request.main;
    this.mainCount = request.mainCount;
    this.wantsFields = request.wantsFields;
    this.responseTimeoutMs = request.responseTimeoutMs;
    this.expires = request.expires;
    this.collector = collector;
    this.#pool = pool;
    this.#primary = request.primary;
    this.#slowPool = request.slowPool;
    this.#pace = request.pace;
    this.#context = request.context;
    this.expected = request.pace.expected;
    this.isAnonymous = request.isAnonymous;
    this.#readOnly = request.readOnly;
    this.#callbacks = callbacks;
    this.#signal = request.signal;
    this.#allowance = request.allowance;
    this.#observation = request.observation ?? null;
  }

  submit(): void {
    if (this.#signal?.aborted) this.#reject(this.#signal.reason);
    else {
      this.#signal?.addEventListener("abort", this.#onAbort);
      this.#pool.submit(this);
    }
  }

  get isBrief(): boolean {
    return this.#pace.isBrief;
  }

  get isShort(): boolean {
    return this.#pace.isShort && !this.#isLong;
  }

  get isLong(): boolean {
    return this.#isLong || this.#pace.isLongFor(this);
  }

  get kind(): object {
    return this.#isLong ? this.#pace.longKind : this.#pace;
  }

  get caller(): string {
    this.#caller ??= callerKeyOf(this.#context);
    return this.#caller;
  }

  get relations(): readonly string[] {
    return this.#pace.relations;
  }

  get interruptible(): ShareHolder | null {
    return this.#readOnly && this.#slowPool !== undefined ? this : null;
  }

  get isAbandoned(): boolean {
    return this.#signal?.aborted ?? false;
  }

  /** The connection that runs the transaction, if any. */
  get connection(): PostgresConnection | null {
    return this.#connection;
  }

  start(connection: PostgresConnection): void {
    this.#connection = connection;
    this.#observation?.startedOn(connection.pid);
    connection.send(this);
  }

  admits(bytes: number): boolean {
    if (this.#budgetError) return false;
    this.#observation?.row(bytes);
    this.#heldBytes += bytes;
    if (this.#allowance.take(bytes)) return true;
    this.#budgetError = this.#allowance.refusal();
    this.#discardResult();
    // Writes and statements on shared connections are not cancelled: the rest of the response is skipped.
    if (this.#readOnly) this.#connection?.cancel();
    return false;
  }

  refuse(error: unknown): void {
    if (this.#mayAskPrimary(error)) this.#askPrimary();
    else this.#reject(error);
  }

  #reject(error: unknown): void {
    this.#signal?.removeEventListener("abort", this.#onAbort);
    this.#observation?.finish(error);
    this.#callbacks.reject(error);
  }

  end(outcome: BatchOutcome): void {
    const connection = this.#connection!;
    this.#connection = null;
    if (outcome.kind !== "lost") this.#observation?.took(outcome.milliseconds);
    if (this.#signal?.aborted) this.#reject(this.#signal.reason);
    else if (this.#budgetError) this.#onBudgetExceeded(outcome, this.#budgetError);
    else if (outcome.kind === "done") this.#accept(outcome);
    else if (outcome.kind === "refused") this.#onRefused(outcome, connection);
    else this.#onLost(outcome, connection);
  }

  #accept({ milliseconds, fields }: OutcomeOfKind<"done">): void {
    this.#pace.ran(milliseconds, this);
    this.#signal?.removeEventListener("abort", this.#onAbort);
    this.#observation?.finish(null);
    this.#callbacks.resolve(fields);
  }

  /** A response that was too large is not requested again. For a write the error says whether it was committed. */
  #onBudgetExceeded(outcome: BatchOutcome, budgetError: ApiError): void {
    if (outcome.kind !== "lost") this.#pace.ran(outcome.milliseconds, this);
    if (this.#readOnly) this.#reject(budgetError);
    else if (outcome.kind === "done") this.refuse(changedButResponseTooLarge());
    else this.refuse(outcome.kind === "refused" ? outcome.error : outcomeUnknown(outcome.cause));
  }

  #onRefused(
    { milliseconds, error, isStale, isInterrupted }: OutcomeOfKind<"refused">,
    connection: PostgresConnection,
  ): void {
    this.#pace.ran(milliseconds, this);
    if (isInterrupted && this.#discardResult()) this.#continueInSlowPool();
    else if (isStale && this.#mayRunAgain()) this.#runAgain();
    else if (suspectsStandby(error) && !isDeclaredReadOnly(this.steps))
      void this.#refuseUnlessStandby(error, connection);
    else this.refuse(error);
  }

  /** Sends the statement again when there is a primary, if a standby has refused it: a standby has changed nothing. */
  async #refuseUnlessStandby(error: Error, connection: PostgresConnection): Promise<void> {
    const isMoved = await this.#pool.leavesStandby(connection);
    // The statement was rejected meanwhile.
    if (this.#signal?.aborted) return;
    if (!isMoved) this.refuse(error);
    else if (this.#discardResult()) this.#pool.submit(this);
    else this.refuse(connectionLost(error));
  }

  #onLost({ cause, sent }: OutcomeOfKind<"lost">, connection: PostgresConnection): void {
    if (this.#mayAskPrimary(cause)) this.#askPrimary();
    else if (!sent) this.#pool.submit(this);
    else if (!this.#readOnly) this.refuse(outcomeUnknown(cause));
    else if (this.#mayRunAfterLoss(connection)) this.#runAgain();
    else this.refuse(connectionLost(cause));
  }

  /** A server crash closes all its connections, so the statement runs again only on a connection that was opened after the first loss. */
  #mayRunAfterLoss({ openedAt }: PostgresConnection): boolean {
    const isFirstLoss = this.#lostAt === null || openedAt < this.#lostAt;
    this.#lostAt ??= performance.now();
    return isFirstLoss && this.#discardResult();
  }

  #continueInSlowPool(): void {
    this.#isLong = this.#pool === this.#slowPool;
    // A late cancel may hit a statement that has no other pool.
    this.#pool = this.#slowPool ?? this.#pool;
    this.#pool.submit(this);
  }

  #mayRunAgain(): boolean {
    return !this.fresh && this.#discardResult();
  }

  /**
   * True if a request that a replica rejected may be retried on the primary. Timeouts and cancels are not: the replica may lag, be down or
   * in a recovery conflict.
   */
  #mayAskPrimary(error: unknown): boolean {
    return this.#primary !== undefined && !isQueryCanceled(error) && this.#discardResult();
  }

  #askPrimary(): void {
    const { pool, slowPool } = this.#primary!;
    this.#pool = this.#pool === this.#slowPool ? slowPool : pool;
    this.#slowPool &&= slowPool;
    this.#primary = undefined;
    this.#pool.submit(this);
  }

  #discardResult(): boolean {
    this.#allowance.giveBack(this.#heldBytes);
    this.#heldBytes = 0;
    return this.collector.restart();
  }

  #runAgain(): void {
    this.fresh = true;
    this.#pool.submit(this);
  }

  readonly #onAbort = (): void => {
    if (this.#connection) this.#connection.cancel();
    else {
      this.#pool.withdraw(this);
      this.#reject(this.#signal!.reason);
    }
  };
}
