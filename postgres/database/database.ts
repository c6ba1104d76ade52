import pg, { type PoolClient } from "pg";
import { NO_PEERS, Supervisor, type WorkReport } from "#runtime/concurrency";
import { isLockTimeout } from "../client/lock-timeout.ts";
import {
  type BatchStep,
  type GroupedStatement,
  isOwnStep,
  makeGroupSteps,
  makePrecedingStep,
  makeRequestSteps,
  makeRolledBackSteps,
  type StatementLimits,
} from "./batch-steps.ts";
import type { RunningStatement } from "./connection.ts";
import { ConnectionPools, type ConnectionPoolsState } from "./connection-pools.ts";
import {
  type BlockedStatement,
  describeLock,
  failedStatementOf,
  findBlockingLock,
  RecentLockTimeouts,
} from "./database-errors.ts";
import type {
  DatabaseOptions,
  LargeValueOptions,
  RunStatementOptions,
  RunTogetherOptions,
  RunTransactionOptions,
  StreamRowsOptions,
} from "./database-options.ts";
import { callerKeyOf } from "./fair-sharing.ts";
import { StatementObservation, type StatementObserver } from "./observe-statements.ts";
import { OwnerPool } from "./owner-pool.ts";
import { responseTimeoutFor, shorterLimit } from "./pipelined-batch.ts";
import type { PoolName } from "./pool-sizes.ts";
import { RecordedWrites, type ReplicaState, Replicas } from "./replicas.ts";
import { allowRowsOf, ResponseBudget, UNLIMITED } from "./response-budget.ts";
import { CollectedResults, CollectedRows, type RowChunk, RowStream } from "./result-collectors.ts";
import { hideShards } from "./shard-names.ts";
import type { Statement, StatementContext, StatementResult } from "./statement.ts";
import { type ChosenPools, StatementExecution, type StatementRequest } from "./statement-execution.ts";
import { combinedPacing, type StatementShape, StatementShapes } from "./statement-shape.ts";
import { type QueryInTransaction, type QueryTogether, runTransaction } from "./transaction.ts";

const STALL_TIMEOUT_MS = 30_000;
/** Timeout of the query that finds the blocking lock. */
const LOCK_LOOKUP_TIMEOUT_MS = 1_000;

type TimeLimits = Pick<StatementLimits, "statementTimeout" | "lockTimeout">;

type PooledRequestParts = Omit<
  StatementRequest,
  "context" | "isAnonymous" | "expires" | "slowPool" | "primary" | "observation"
>;

export function openDatabase(options: DatabaseOptions): Database {
  return new Database(options);
}

/** Runs statements as a caller (pipelined, with its role and settings) or as the owner. */
export class Database {
  readonly #pools: ConnectionPools;
  readonly #owner: OwnerPool;
  readonly #report: WorkReport;
  readonly #replicas: Replicas | null;
  readonly #writes: RecordedWrites;
  readonly #shapes = new StatementShapes();
  readonly #recentLockTimeouts = new RecentLockTimeouts();
  readonly #observe: StatementObserver | null;
  readonly #limits: TimeLimits;
  readonly #anonymousRole: string | undefined;
  readonly #anonymousLimits: TimeLimits;
  readonly #acquireTimeout: number;
  readonly #maxResponseBytes: number;
  readonly #totalBudget: ResponseBudget;
  #closing: Promise<void> | null = null;

  constructor({
    url,
    ownerUrl,
    log,
    onState = () => {},
    poolSize: size = 28,
    preparedStatements = null,
    transactionMode = null,
    settingMode = null,
    pipelineDepth = 64,
    sharedProcessors = Number.POSITIVE_INFINITY,
    statementTimeout = 30_000,
    lockTimeout = 3_000,
    anonymous = null,
    acquireTimeout = 10_000,
    maxAnswerBytes = 32 * 2 ** 20,
    answerMemory = 8 * maxAnswerBytes,
    applicationName = "content-service",
    observe = null,
    replicaUrls = [],
    maxReplicaLag = 10,
    peers = NO_PEERS,
    supervisor = new Supervisor({ log }),
  }: DatabaseOptions) {
    const report = supervisor.report("connections to the database");
    this.#report = report;
    this.#observe = observe;
    this.#limits = { statementTimeout, lockTimeout };
    this.#anonymousRole = anonymous?.role;
    const ofAnonymous = shorterLimit(statementTimeout, anonymous?.statementTimeout ?? 0);
    this.#anonymousLimits = { statementTimeout: ofAnonymous, lockTimeout };
    this.#acquireTimeout = acquireTimeout;
    this.#maxResponseBytes = maxAnswerBytes;
    this.#totalBudget = new ResponseBudget(answerMemory);
    const sessionOptions = { applicationName, log, report, preparedStatements, transactionMode, settingMode };
    const poolOptions = { ...sessionOptions, size, pipelineDepth, sharedProcessors };
    this.#pools = new ConnectionPools({ url, onState, ...poolOptions });
    this.#owner = new OwnerPool({ url: ownerUrl, applicationName, acquireTimeout, report });
    const ofReplicas = { urls: replicaUrls, maxLag: maxReplicaLag, primary: this.#pools.pools.read, peers };
    this.#replicas = replicaUrls.length > 0 ? new Replicas({ ...ofReplicas, ...poolOptions }) : null;
    this.#writes = new RecordedWrites(this.#replicas);
  }

  /**
   * Sends the caller's settings and one statement in one write and one transaction. Resolves only after
   * ReadyForQuery, since deferred constraints fail at commit. Rejects with pg's DatabaseError if Postgres rejects the
   * statement (a ContextError if it rejects the role or a setting, a PrecedingStatementError if it rejects `before`), and
   * with an ApiError if no connection is available or the response exceeds its budget.
   */
  run(
    context: StatementContext,
    statement: Statement,
    options: RunStatementOptions & LargeValueOptions,
  ): Promise<StatementResult<string | Buffer | null>>;
  run(context: StatementContext, statement: Statement, options?: RunStatementOptions): Promise<StatementResult>;
  run(
    context: StatementContext,
    statement: Statement,
    options: RunStatementOptions & Partial<LargeValueOptions> = {},
  ): Promise<StatementResult<string | Buffer | null>> {
    const changesNothing = options.readOnly || options.rollback;
    const result = this.#run(context, statement, options);
    return changesNothing ? result : this.#writes.record(context.readYourWrites, result);
  }

  #run(
    context: StatementContext,
    statement: Statement,
    options: RunStatementOptions & Partial<LargeValueOptions>,
  ): Promise<StatementResult<string | Buffer | null>> {
    return new Promise((resolve, reject) => {
      const { readOnly = false, rollback = false, fields = false, before, timeoutMs, signal } = options;
      const shape = this.#shapes.shapeFor(context.role, statement.text);
      const limits = { ...this.#limitsFor(context), readOnly, timeoutMs, before: this.#stepsBefore(context, before) };
      const steps = (rollback ? makeRolledBackSteps : makeRequestSteps)(shape, statement, context, limits);
      const changesNothing = readOnly || rollback;
      const chosen = this.#choosePools(context, this.#choosePoolName(shape, options), readOnly);
      const own = options.budget || !changesNothing ? null : this.#makeResponseBudget();
      const request = this.#makeRequest(context, [statement], chosen, {
        pace: shape,
        steps,
        main: steps.findLastIndex((step) => step.shape === shape),
        mainCount: 1,
        wantsFields: fields,
        responseTimeoutMs: responseTimeoutFor(context, limits),
        readOnly: changesNothing,
        allowance: options.budget ?? own ?? UNLIMITED,
        signal,
      });
      const rows = options.largeValues === "buffer" ? CollectedRows.withBuffers() : CollectedRows.ofStrings();
      const callbacks = {
        resolve: (resultFields: StatementResult["fields"]) => {
          own?.giveAllBack();
          resolve({ rows: rows.rows, rowCount: rows.rowCount, fields: resultFields });
        },
        reject: (error: unknown) => {
          own?.giveAllBack();
          this.#explainError(error, context, { relations: shape.relations, readOnly }, reject);
        },
      };
      new StatementExecution(chosen.pool, request, rows, callbacks).submit();
    });
  }

  /**
   * Sends several statements of one caller in one write and one transaction: all take effect or none. Rejects like `run`;
   * `failedStatementOf` returns the index of the failed statement.
   */
  runTogether(
    context: StatementContext,
    statements: readonly GroupedStatement[],
    options: RunTogetherOptions & LargeValueOptions,
  ): Promise<StatementResult<string | Buffer | null>[]>;
  runTogether(
    context: StatementContext,
    statements: readonly GroupedStatement[],
    options?: RunTogetherOptions,
  ): Promise<StatementResult[]>;
  async runTogether(
    context: StatementContext,
    statements: readonly GroupedStatement[],
    options: RunTogetherOptions & Partial<LargeValueOptions> = {},
  ): Promise<StatementResult<string | Buffer | null>[]> {
    if (statements.length === 0) return [];
    const changesNothing = options.readOnly || options.rollback;
    const results = this.#runInOneTransaction(context, statements, options);
    return changesNothing ? results : this.#writes.record(context.readYourWrites, results);
  }

  #runInOneTransaction(
    context: StatementContext,
    statements: readonly GroupedStatement[],
    options: RunTogetherOptions & { readonly largeValues: "buffer" },
  ): Promise<StatementResult<string | Buffer | null>[]>;
  #runInOneTransaction(
    context: StatementContext,
    statements: readonly GroupedStatement[],
    options: RunTogetherOptions & Partial<LargeValueOptions>,
  ): Promise<StatementResult[]>;
  #runInOneTransaction(
    context: StatementContext,
    statements: readonly GroupedStatement[],
    options: RunTogetherOptions & Partial<LargeValueOptions>,
  ): Promise<StatementResult<string | Buffer | null>[]> {
    return new Promise((resolve, reject) => {
      const { readOnly = false, rollback = false, signal } = options;
      const shapes = statements.map(({ text }) => this.#shapes.shapeFor(context.role, text));
      const pace = combinedPacing(shapes);
      const changesNothing = readOnly || rollback;
      const own = options.budget || !changesNothing ? null : this.#makeResponseBudget();
      const chosen = this.#choosePools(context, readOnly ? "read" : "write", readOnly);
      const request = this.#makeRequest(context, statements, chosen, {
        pace,
        ...this.#groupedSteps(context, statements, options),
        wantsFields: false,
        readOnly: changesNothing,
        allowance: options.budget ?? own ?? UNLIMITED,
        signal,
      });
      const { length } = statements;
      const collector =
        options.largeValues === "buffer" ? CollectedResults.withBuffers(length) : CollectedResults.ofStrings(length);
      const callbacks = {
        resolve: () => {
          own?.giveAllBack();
          resolve(collector.results);
        },
        reject: (error: unknown) => {
          own?.giveAllBack();
          const { relations } = shapes[failedStatementOf(error) ?? -1] ?? pace;
          this.#explainError(error, context, { relations, readOnly }, reject);
        },
      };
      new StatementExecution(chosen.pool, request, collector, callbacks).submit();
    });
  }

  #groupedSteps(
    context: StatementContext,
    statements: readonly GroupedStatement[],
    { readOnly = false, rollback = false, before, timeoutMs }: RunTogetherOptions,
  ): Pick<StatementRequest, "steps" | "main" | "mainCount" | "responseTimeoutMs"> {
    const shapeOf = ({ text }: Statement) => this.#shapes.shapeFor(context.role, text);
    const terms = { ...this.#limitsFor(context), readOnly, timeoutMs };
    const grouped = makeGroupSteps(statements, context, shapeOf, terms);
    const mainCount = grouped.length - grouped.findIndex(isOwnStep);
    const { shape } = grouped.pop()!;
    const limits = { ...terms, before: [...this.#stepsBefore(context, before), ...grouped] };
    const steps = (rollback ? makeRolledBackSteps : makeRequestSteps)(shape, statements.at(-1)!, context, limits);
    const main = steps.findLastIndex((step) => step.shape === shape) + 1 - mainCount;
    return { steps, main, mainCount, responseTimeoutMs: responseTimeoutFor(context, limits) };
  }

  /**
   * Streams the first column, a text, row by row; the first chunk has the other columns of the first row. Starts
   * at the first `next()`.
   */
  stream(context: StatementContext, statement: Statement, options: StreamRowsOptions): AsyncIterableIterator<RowChunk> {
    const ownLimits = this.#limitsFor(context);
    const { readOnly = true, timeoutMs = ownLimits.statementTimeout, stallMs = STALL_TIMEOUT_MS } = options;
    const { separator, before, signal } = options;
    const shape = this.#shapes.shapeFor(context.role, statement.text);
    // A client that reads slowly must not time out: the limit is on the server's silence, and enforced here.
    const stepsBefore = this.#stepsBefore(context, before);
    const limits = { ...ownLimits, statementTimeout: 0, readOnly, timeoutMs: undefined, before: stepsBefore };
    const steps = makeRequestSteps(shape, statement, context, limits);
    return new RowStream({
      separator,
      stallTimeout: stallMs,
      signal,
      request: (collector, callbacks, stop) => {
        const chosen = this.#choosePools(context, "stream", readOnly);
        const request = this.#makeRequest(context, [statement], chosen, {
          pace: shape,
          steps,
          main: steps.length - 1,
          mainCount: 1,
          wantsFields: false,
          responseTimeoutMs: timeoutMs === 0 ? Number.POSITIVE_INFINITY : timeoutMs,
          readOnly,
          allowance: allowRowsOf(this.#maxResponseBytes),
          signal: stop,
        });
        const reject = (error: unknown) =>
          this.#explainError(error, context, { relations: shape.relations, readOnly }, callbacks.reject);
        return new StatementExecution(chosen.pool, request, collector, { ...callbacks, reject });
      },
    });
  }

  /** True if a stream of this caller would start at once. */
  hasFreeStream(context: StatementContext): boolean {
    const isAnonymous = this.#isAnonymous(context);
    const caller = callerKeyOf(context);
    return this.#pools.pools.stream.accepts({ caller, isAnonymous, relations: [], isLong: false });
  }

  /** Runs several statements of one caller between BEGIN and COMMIT; rolls back if `work` rejects. */
  transaction<T>(
    context: StatementContext,
    work: (query: QueryInTransaction, queryTogether: QueryTogether) => Promise<T>,
    { readOnly = false, timeoutMs, isolation, isTimedAsOne = false, makeBudget }: RunTransactionOptions = {},
  ): Promise<T> {
    const limits = { ...this.#limitsFor(context), readOnly, timeoutMs };
    const plan = {
      isAnonymous: this.#isAnonymous(context),
      pool: this.#pools.pools.write,
      shapes: this.#shapes,
      context,
      limits,
      isolation,
      isTimedAsOne,
      responseTimeoutMs: responseTimeoutFor(context, limits),
      deadline: () => this.#acquireDeadline(),
      makeBudget: makeBudget ?? (() => this.#makeResponseBudget()),
      watch: (statements: readonly Statement[]) => this.#startObservation(context, statements),
      explain: (error: unknown, relations: readonly string[]) =>
        new Promise<unknown>((resolve) => this.#explainError(error, context, { relations, readOnly }, resolve)),
    };
    const result = runTransaction(plan, work);
    return readOnly ? result : this.#writes.record(context.readYourWrites, result);
  }

  /** Names tables in an error of a worker as the caller knows them, explains it, and passes it on. */
  #explainError(
    error: unknown,
    context: StatementContext,
    blocked: BlockedStatement,
    proceed: (error: unknown) => void,
  ): void {
    const explain = () => this.#explainLockTimeout(error, context, blocked, proceed);
    const isDistributed = this.#pools.state.capabilities?.settingMode === "distributed";
    if (!isDistributed || !(error instanceof pg.DatabaseError)) explain();
    else void hideShards(error, (work) => this.asOwner(work)).then(explain);
  }

  /** Adds the blocking lock to a lock timeout, if it can be found, and passes the error on. */
  #explainLockTimeout(
    error: unknown,
    context: StatementContext,
    blocked: BlockedStatement,
    proceed: (error: unknown) => void,
  ): void {
    const { role } = context;
    if (blocked.relations.length === 0) proceed(error);
    else if (!isLockTimeout(error)) proceed(this.#recentLockTimeouts.explain(error, role, blocked.relations));
    else {
      this.run(context, findBlockingLock(blocked), { readOnly: true, timeoutMs: LOCK_LOOKUP_TIMEOUT_MS })
        .then(({ rows }) => describeLock(error, rows))
        .then(() => this.#recentLockTimeouts.remember(role, error))
        .catch(() => {})
        .finally(() => proceed(error));
    }
  }

  /** Makes every request for the pools; no other code does. */
  #makeRequest(
    context: StatementContext,
    statements: readonly Statement[],
    { slowPool, primary }: ChosenPools,
    parts: PooledRequestParts,
  ): StatementRequest {
    return {
      context,
      isAnonymous: this.#isAnonymous(context),
      pace: parts.pace,
      steps: parts.steps,
      main: parts.main,
      mainCount: parts.mainCount,
      wantsFields: parts.wantsFields,
      responseTimeoutMs: parts.responseTimeoutMs,
      readOnly: parts.readOnly,
      allowance: parts.allowance,
      expires: this.#acquireDeadline(),
      signal: parts.signal,
      slowPool,
      primary,
      observation: this.#startObservation(context, statements),
    };
  }

  #stepsBefore({ role }: StatementContext, before: Statement | undefined): BatchStep[] {
    if (!before) return [];
    return [makePrecedingStep(this.#shapes.shapeFor(role, before.text), before)];
  }

  /** Runs work as the owner: private functions, the catalogue, migrations. */
  asOwner<T>(work: (client: PoolClient) => Promise<T>): Promise<T> {
    return this.#owner.lend(work);
  }

  /** Called after DDL: statements are prepared again, except those in flight. */
  forgetStatements(): void {
    this.#pools.forgetStatements();
    this.#replicas?.schemaChanged();
  }

  /** The state of each replica, in the order of `replicaUrls`. */
  replicas(): readonly ReplicaState[] {
    return this.#replicas?.state ?? [];
  }

  /** The statements that run at this moment. */
  runningStatements(): readonly RunningStatement[] {
    return this.#pools.runningStatements();
  }

  /** Returns the number of requests of this process that run or wait for a connection, without requests to replicas. */
  countStatements(): number {
    return this.#pools.countStatements();
  }

  state(): ConnectionPoolsState {
    return this.#pools.state;
  }

  /** Refuses new requests, waits for the running ones, then closes all connections. */
  close(): Promise<void> {
    this.#closing ??= Promise.all([this.#pools.close(), this.#replicas?.close()])
      .then(() => this.#owner.close())
      .finally(() => this.#report.close());
    return this.#closing;
  }

  #choosePoolName(shape: StatementShape, { pool, readOnly }: RunStatementOptions): PoolName {
    const wanted = pool ?? (readOnly ? "read" : "write");
    return wanted === "read" && !shape.isFast ? "slow" : wanted;
  }

  /** Chooses the pools of a replica that has replayed far enough, if any, else those of the primary. */
  #choosePools({ readYourWrites }: StatementContext, name: PoolName, readOnly: boolean): ChosenPools {
    const { pools } = this.#pools;
    const isShared = name === "read" || name === "slow";
    const replica = readOnly && readYourWrites ? this.#replicas?.choose(readYourWrites) : null;
    if (!replica) return { pool: pools[name], slowPool: isShared ? pools.slow : undefined, primary: undefined };
    const primary = { pool: pools[name], slowPool: pools.slow };
    return { pool: replica.pool(name), slowPool: isShared ? replica.pool("slow") : undefined, primary };
  }

  #isAnonymous({ role }: StatementContext): boolean {
    return role === this.#anonymousRole;
  }

  #limitsFor(context: StatementContext): TimeLimits {
    return this.#isAnonymous(context) ? this.#anonymousLimits : this.#limits;
  }

  #startObservation(context: StatementContext, statements: readonly Statement[]): StatementObservation | null {
    if (!this.#observe) return null;
    const texts = statements.map(({ text }) => text);
    return new StatementObservation(this.#observe(context, texts));
  }

  #makeResponseBudget(): ResponseBudget {
    return new ResponseBudget(this.#maxResponseBytes, this.#totalBudget);
  }

  #acquireDeadline(): number {
    return performance.now() + this.#acquireTimeout;
  }
}
