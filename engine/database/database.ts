import { DatabaseError, type PoolClient } from "pg";
import type { AbortLike } from "../concurrency/abort.ts";
import { NO_PEERS, type PeerWorkers } from "../concurrency/peer-workers.ts";
import type { RunningStatement } from "./connection.ts";
import {
  ConnectionPools,
  type ConnectionPoolsState,
  type DatabaseAvailability,
  type DatabaseLog,
  type PoolName,
} from "./connection-pools.ts";
import {
  type BlockedStatement,
  describeLock,
  findBlockingLock,
  isLockTimeout,
  isUnanswered,
  RecentLockTimeouts,
} from "./database-errors.ts";
import { StatementObservation, type StatementObserver } from "./observe-statements.ts";
import { OwnerPool } from "./owner-pool.ts";
import {
  type BatchStep,
  type IsolationLevel,
  makeRequestSteps,
  makeRolledBackSteps,
  makeStatementStep,
  responseTimeoutFor,
  type StatementLimits,
  shorterLimit,
} from "./pipelined-batch.ts";
import { type ReplicaState, Replicas } from "./replicas.ts";
import { allowRowsOf, ResponseBudget, UNLIMITED } from "./response-budget.ts";
import { CollectedResults, CollectedRows, type RowChunk, RowStream } from "./result-collectors.ts";
import type { SessionSettings } from "./session-traits.ts";
import type { Statement, StatementContext, StatementResult } from "./statement.ts";
import { type ChosenPools, StatementExecution, type StatementRequest } from "./statement-execution.ts";
import { combinedPace, StatementShape, StatementShapes } from "./statement-shape.ts";
import { type QueryInTransaction, runTransaction } from "./transaction.ts";

const STALL_TIMEOUT_MS = 30_000;
/** Timeout of the query that finds the blocking lock. */
const LOCK_LOOKUP_TIMEOUT_MS = 1_000;

export type DatabaseOptions = Partial<SessionSettings> & {
  /** The login for requests, a member of the callers' roles. */
  readonly url: string;
  readonly ownerUrl: string;
  readonly log: DatabaseLog;
  /** Called once per change of availability. */
  readonly onState?: (condition: DatabaseAvailability) => void;
  /** The maximum number of connections for requests, within half of what the server can spare; the owner's few come on top. */
  readonly poolSize?: number;
  /** The maximum number of reads in flight per connection. */
  readonly pipelineDepth?: number;
  /** Statement timeout in milliseconds; 0 is no limit. */
  readonly statementTimeout?: number;
  /** Lock timeout in milliseconds; 0 is no limit. */
  readonly lockTimeout?: number;
  /** The role of anonymous callers, and their statement timeout if it is shorter. */
  readonly anonymous?: { readonly role: string; readonly statementTimeout: number } | null;
  /** How many milliseconds a request waits for a connection. */
  readonly acquireTimeout?: number;
  /** The maximum number of bytes of one response, and of one row of a stream. */
  readonly maxAnswerBytes?: number;
  /** The memory for all responses in progress. */
  readonly answerMemory?: number;
  readonly applicationName?: string;
  readonly observe?: StatementObserver | null;
  /** Streaming replicas, for reads of contexts with a read-your-writes position. */
  readonly replicaUrls?: readonly string[];
  /** The maximum lag of a replica, in seconds. */
  readonly maxReplicaLag?: number;
  readonly peers?: PeerWorkers;
};

export type RunStatementOptions = {
  /** Runs in a read-only transaction; the statement may run again when its connection is lost. */
  readonly readOnly?: boolean;
  /** By default reads go where reads go, once they have proved to be fast, and everything else where writes go. */
  readonly pool?: "read" | "write" | "slow";
  /** The caller executes it in the same transaction before the statement; its rows are of no interest. */
  readonly before?: Statement | undefined;
  /** Runs the statement, checks deferred constraints, and rolls back. */
  readonly rollback?: boolean;
  /** Overrides the statement timeout of the database and the role; 0 is no limit. */
  readonly timeoutMs?: number;
  /** Whether to return the names and types of the columns. */
  readonly fields?: boolean;
  /**
   * The memory budget of the response; overrides the default limit. By default writes have no limit: they are committed
   * before the response arrives, so a refusal would undo nothing.
   */
  readonly budget?: ResponseBudget | undefined;
  /** Aborts the wait; cancels the statement if it does not share its connection. */
  readonly signal?: AbortLike | undefined;
};

/** The budget is shared by all statements; by default each has its own. */
export type SharedRunOptions = Pick<RunStatementOptions, "budget" | "signal">;

/** Returns values of more than 32 kB as Buffers. */
export type LargeValueOptions = { readonly largeValues: "buffer" };

export type StreamRowsOptions = Pick<RunStatementOptions, "readOnly" | "before" | "signal"> & {
  readonly separator: string;
  /** How many milliseconds the server may be silent; the role's own statement_timeout applies as well. */
  readonly timeoutMs?: number;
  /** How many milliseconds chunks may wait for the reader. */
  readonly stallMs?: number;
};

export type RunTransactionOptions = Pick<RunStatementOptions, "readOnly" | "timeoutMs"> & {
  readonly isolation?: IsolationLevel;
  /** Whether the statement timeout holds for all statements and the commit together. */
  readonly isTimedAsOne?: boolean;
  /** Makes the memory budget of each statement; overrides the default limit. */
  readonly makeBudget?: () => ResponseBudget;
};

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
  readonly #replicas: Replicas | null;
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
    pipelineDepth = 64,
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
  }: DatabaseOptions) {
    this.#observe = observe;
    this.#limits = { statementTimeout, lockTimeout };
    this.#anonymousRole = anonymous?.role;
    const ofAnonymous = shorterLimit(statementTimeout, anonymous?.statementTimeout ?? 0);
    this.#anonymousLimits = { statementTimeout: ofAnonymous, lockTimeout };
    this.#acquireTimeout = acquireTimeout;
    this.#maxResponseBytes = maxAnswerBytes;
    this.#totalBudget = new ResponseBudget(answerMemory);
    const poolOptions = { applicationName, log, size, preparedStatements, transactionMode, pipelineDepth };
    this.#pools = new ConnectionPools({ url, onState, ...poolOptions });
    this.#owner = new OwnerPool({ url: ownerUrl, applicationName, acquireTimeout });
    const ofReplicas = { urls: replicaUrls, maxLag: maxReplicaLag, primary: this.#pools.pools.read, peers };
    this.#replicas = replicaUrls.length > 0 ? new Replicas({ ...ofReplicas, ...poolOptions }) : null;
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
    return changesNothing ? result : this.#recordWrite(context, result);
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
          this.#explainLockTimeout(error, context, { relations: shape.relations, readOnly }, reject);
        },
      };
      new StatementExecution(chosen.pool, request, rows, callbacks).submit();
    });
  }

  /**
   * Runs several reads of one caller. If all are known to be fast, they share one transaction, which saves settings and
   * round trips. If that transaction fails, each statement runs again by itself, so that they fail independently.
   */
  runEach(
    context: StatementContext,
    statements: readonly Statement[],
    options: SharedRunOptions = {},
  ): Promise<StatementResult>[] {
    const runAlone = (statement: Statement) => this.run(context, statement, { ...options, readOnly: true });
    const shapes = statements.map(({ text }) => this.#shapes.shapeFor(context.role, text));
    if (statements.length < 2 || !StatementShape.areFastTogether(shapes)) return statements.map(runAlone);
    const shared = this.#runInOneTransaction(context, statements, shapes, options);
    return statements.map((statement, index) =>
      shared.then(
        (results) => results[index]!,
        (error) => {
          if (isUnanswered(error)) throw error;
          return runAlone(statement);
        },
      ),
    );
  }

  #runInOneTransaction(
    context: StatementContext,
    statements: readonly Statement[],
    shapes: readonly StatementShape[],
    { budget, signal }: SharedRunOptions,
  ): Promise<StatementResult[]> {
    const own = budget ? null : this.#makeResponseBudget();
    const answered = new Promise<StatementResult[]>((resolve, reject) => {
      const last = statements.length - 1;
      const before = statements
        .slice(0, last)
        .map((statement, index) => makeStatementStep(shapes[index]!, statement, { sync: false }));
      const limits = { ...this.#limitsFor(context), readOnly: true, timeoutMs: undefined, before };
      const steps = makeRequestSteps(shapes[last]!, statements[last]!, context, limits);
      const collector = new CollectedResults(statements.length);
      const chosen = this.#choosePools(context, "read", true);
      const request = this.#makeRequest(context, statements, chosen, {
        pace: combinedPace(shapes),
        steps,
        main: steps.length - statements.length,
        mainCount: statements.length,
        wantsFields: false,
        responseTimeoutMs: responseTimeoutFor(context, limits),
        readOnly: true,
        allowance: budget ?? own!,
        signal,
      });
      const resolveEach = () =>
        resolve(collector.results.map(({ rows, rowCount }) => ({ rows, rowCount, fields: null })));
      new StatementExecution(chosen.pool, request, collector, { resolve: resolveEach, reject }).submit();
    });
    return answered.finally(() => own?.giveAllBack());
  }

  /**
   * Streams the first column, a text, row by row; the other columns of the first row come with the first chunk. Starts
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
          this.#explainLockTimeout(error, context, { relations: shape.relations, readOnly }, callbacks.reject);
        return new StatementExecution(chosen.pool, request, collector, { ...callbacks, reject });
      },
    });
  }

  /** Runs several statements of one caller between BEGIN and COMMIT; rolls back if `work` rejects. */
  transaction<T>(
    context: StatementContext,
    work: (query: QueryInTransaction) => Promise<T>,
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
      watch: (statement: Statement) => this.#startObservation(context, [statement]),
      explain: (error: unknown, { relations }: StatementShape) =>
        new Promise((resolve) => this.#explainLockTimeout(error, context, { relations, readOnly }, resolve)),
    };
    const result = runTransaction(plan, work);
    return readOnly ? result : this.#recordWrite(context, result);
  }

  /** Records the WAL position of a write, so that the caller's later reads see it on replicas too. */
  async #recordWrite<T>({ readYourWrites }: StatementContext, work: Promise<T>): Promise<T> {
    if (!this.#replicas || !readYourWrites) return work;
    try {
      const result = await work;
      await this.#replicas.recordWrite(readYourWrites);
      return result;
    } catch (error) {
      // If the connection was lost, the write may have been committed; if Postgres rejected it, it was not.
      if (!(error instanceof DatabaseError)) this.#replicas.recordPossibleWrite(readYourWrites);
      throw error;
    }
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
      const options = { readOnly: true, timeoutMs: LOCK_LOOKUP_TIMEOUT_MS } as const;
      this.run(context, findBlockingLock(blocked), options)
        .then(({ rows }) => describeLock(error, rows))
        .then(() => this.#recentLockTimeouts.remember(role, error))
        .catch(() => {})
        .finally(() => proceed(error));
    }
  }

  /** The only place where a request for the pools is put together. */
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
    const step = makeStatementStep(this.#shapes.shapeFor(role, before.text), before, { sync: false });
    return [{ ...step, isPreceding: true }];
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

  state(): ConnectionPoolsState {
    return this.#pools.state;
  }

  /** Refuses new requests, waits for the running ones, then closes all connections. */
  close(): Promise<void> {
    this.#closing ??= Promise.all([this.#pools.close(), this.#replicas?.close()]).then(() => this.#owner.close());
    return this.#closing;
  }

  #choosePoolName(shape: StatementShape, { pool, readOnly }: RunStatementOptions): PoolName {
    const wanted = pool ?? (readOnly ? "read" : "write");
    return wanted === "read" && !shape.isFast ? "slow" : wanted;
  }

  /** Chooses the pools of a replica that is far enough, if any, else of the primary. */
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
