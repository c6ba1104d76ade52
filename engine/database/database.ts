import { DatabaseError, type PoolClient } from "pg";
import type { Abort } from "../abort.ts";
import { Budget, rowsOf, UNLIMITED } from "./budget.ts";
import type { Condition, Log } from "./condition.ts";
import { shortestLimit } from "./duration.ts";
import {
  type Isolation,
  patienceFor,
  requestSteps,
  type Step,
  statementStep,
  type Terms,
  undoneSteps,
} from "./exchange.ts";
import { isUnanswered } from "./faults.ts";
import { KnownLocks } from "./known-locks.ts";
import type { Lane } from "./lane.ts";
import { type Blocked, blockingLock, isLockTimeout, nameLock } from "./lock-timeout.ts";
import { type Observe, Watch } from "./observe.ts";
import { OwnerPool } from "./owner.ts";
import { LinkPool, type PoolState } from "./pool.ts";
import type { ReplicaState } from "./replicas/replica.ts";
import { Replicas } from "./replicas/replicas.ts";
import { type Elsewhere, Request } from "./request.ts";
import type { LaneName } from "./room.ts";
import { Rows, RowsInTurn } from "./rows.ts";
import { paceOfAll, Shape, Shapes } from "./shape.ts";
import type { Context, Result, Statement } from "./statement.ts";
import { type Chunk, RowStream } from "./stream.ts";
import { inTransaction, type Query } from "./transaction.ts";
import type { UnderWay } from "./under-way.ts";

const STALL_MILLISECONDS = 30_000;
/** For how long it is looked which lock a statement has waited for. */
const LOOK_MILLISECONDS = 1_000;
/** How many of the largest answers may be in the making at once. */
const LARGE_ANSWERS = 8;

export type DatabaseOptions = {
  /** The login of all requests, a member of the callers' roles. */
  readonly url: string;
  readonly ownerUrl: string;
  readonly log: Log;
  /** Told of each change, once. */
  readonly onState?: (condition: Condition) => void;
  /** How many connections requests may use, within half of what the server has free; the owner's few come on top. */
  readonly poolSize?: number;
  /** False behind a pooler that cannot keep statements prepared. */
  readonly preparedStatements?: boolean;
  /** Most reads that are in flight on one connection. */
  readonly pipelineDepth?: number;
  /** Milliseconds for one statement; 0 is no limit. */
  readonly statementTimeout?: number;
  /** Milliseconds that a statement waits for one lock; 0 is no limit. */
  readonly lockTimeout?: number;
  /** Callers without credentials: their role, and how long a statement of theirs may take where that is less. */
  readonly anonymous?: { readonly role: string; readonly statementTimeout: number } | null;
  /** For how many milliseconds a request waits for a connection. */
  readonly acquireTimeout?: number;
  /** The most bytes that are held of one answer, and of one row of a stream. */
  readonly maxAnswerBytes?: number;
  readonly applicationName?: string;
  readonly observe?: Observe | null;
  /** Streaming replicas, which reads of a context that has a footing go to. */
  readonly replicaUrls?: readonly string[];
  /** How many seconds a replica may be behind. */
  readonly mostReplicaLag?: number;
};

export type RunOptions = {
  /** Postgres refuses to write (25006); and the statement may run again when its connection is lost. */
  readonly readOnly?: boolean;
  /** By default reads go where reads go, once they have proved to be fast, and everything else where writes go. */
  readonly lane?: "read" | "write" | "slow";
  /** The caller executes it in the same transaction before the statement; its rows are of no interest. */
  readonly before?: Statement | undefined;
  /** Does everything, checks deferred constraints too, and undoes it. */
  readonly rollback?: boolean;
  /** Instead of the database's and the role's own limit; 0 is no limit. */
  readonly timeoutMs?: number;
  /** Names and types of the columns are wanted too. */
  readonly fields?: boolean;
  /**
   * What may be held of the answer, instead of the database's own limit. Without it, what writes has none: it is committed
   * by the time that its answer comes, and to refuse that would undo nothing.
   */
  readonly budget?: Budget | undefined;
  /** Ends the wait; and the statement, where it does not share its connection. */
  readonly signal?: Abort | undefined;
};

/** The budget is shared too; without one, each statement may hold as much as an answer may. */
export type SharedOptions = Pick<RunOptions, "budget" | "signal">;

/** Values of more than 32 kB come as Buffers. */
export type LargeValues = { readonly largeValues: "buffer" };

export type StreamOptions = Pick<RunOptions, "readOnly" | "before" | "signal"> & {
  readonly separator: string;
  /** For how many milliseconds the server may send nothing; a role's own statement_timeout counts as well. */
  readonly timeoutMs?: number;
  /** For how many milliseconds nobody may read while chunks wait. */
  readonly stallMs?: number;
};

export type TransactionOptions = Pick<RunOptions, "readOnly" | "timeoutMs"> & { readonly isolation?: Isolation };

export type DatabaseState = PoolState;

type Limits = Pick<Terms, "statementTimeout" | "lockTimeout">;

type Way = {
  readonly lane: Lane;
  readonly slow: Lane | undefined;
  readonly elsewhere: Elsewhere | undefined;
};

export function openDatabase(options: DatabaseOptions): Database {
  return new Database(options);
}

/** The only way to Postgres: as a caller, or as the owner. */
export class Database {
  readonly #pool: LinkPool;
  readonly #owner: OwnerPool;
  readonly #replicas: Replicas | null;
  readonly #shapes = new Shapes();
  readonly #knownLocks = new KnownLocks();
  readonly #observe: Observe | null;
  readonly #limits: Limits;
  readonly #anonymousRole: string | undefined;
  readonly #anonymousLimits: Limits;
  readonly #acquireTimeout: number;
  readonly #maxAnswerBytes: number;
  readonly #allAnswers: Budget;
  #closing: Promise<void> | null = null;

  constructor({
    url,
    ownerUrl,
    log,
    onState = () => {},
    poolSize: size = 28,
    preparedStatements = true,
    pipelineDepth = 64,
    statementTimeout = 30_000,
    lockTimeout = 3_000,
    anonymous = null,
    acquireTimeout = 10_000,
    maxAnswerBytes = 32 * 2 ** 20,
    applicationName = "content-service",
    observe = null,
    replicaUrls = [],
    mostReplicaLag = 10,
  }: DatabaseOptions) {
    this.#observe = observe;
    this.#limits = { statementTimeout, lockTimeout };
    this.#anonymousRole = anonymous?.role;
    const ofAnonymous = shortestLimit(statementTimeout, anonymous?.statementTimeout ?? 0);
    this.#anonymousLimits = { statementTimeout: ofAnonymous, lockTimeout };
    this.#acquireTimeout = acquireTimeout;
    this.#maxAnswerBytes = maxAnswerBytes;
    this.#allAnswers = new Budget(LARGE_ANSWERS * maxAnswerBytes);
    const terms = { applicationName, log, size, preparedStatements, pipelineDepth };
    this.#pool = new LinkPool({ url, onState, ...terms });
    this.#owner = new OwnerPool({ url: ownerUrl, applicationName, acquireTimeout });
    const ofReplicas = { urls: replicaUrls, mostLag: mostReplicaLag, primary: this.#pool.lanes.read };
    this.#replicas = replicaUrls.length > 0 ? new Replicas({ ...ofReplicas, ...terms }) : null;
  }

  /**
   * The caller's settings and one statement in one write and one implicit transaction. Resolves only after
   * ReadyForQuery, since deferred constraints fail there. Rejects with Postgres's own DatabaseError when Postgres
   * refuses (a ContextError when it refuses the role or a setting) and with an ApiError when it cannot be asked, or when
   * its answer is larger than may be held.
   */
  run(
    context: Context,
    statement: Statement,
    options: RunOptions & LargeValues,
  ): Promise<Result<string | Buffer | null>>;
  run(context: Context, statement: Statement, options?: RunOptions): Promise<Result>;
  run(
    context: Context,
    statement: Statement,
    options: RunOptions & Partial<LargeValues> = {},
  ): Promise<Result<string | Buffer | null>> {
    const changesNothing = options.readOnly || options.rollback;
    const result = this.#run(context, statement, options);
    return changesNothing ? result : this.#noting(context, result);
  }

  #run(
    context: Context,
    statement: Statement,
    options: RunOptions & Partial<LargeValues>,
  ): Promise<Result<string | Buffer | null>> {
    return new Promise((resolve, reject) => {
      const { readOnly = false, rollback = false, fields = false, before, timeoutMs, signal } = options;
      const shape = this.#shapes.of(context.role, statement.text);
      const earlier = this.#earlierSteps(context, before);
      const terms = { ...this.#limitsFor(context), readOnly, timeoutMs, before: earlier };
      const steps = (rollback ? undoneSteps : requestSteps)(shape, statement, context, terms);
      const changesNothing = readOnly || rollback;
      const way = this.#wayFor(context, this.#laneFor(shape, options), readOnly);
      const own = options.budget || !changesNothing ? null : this.#makeBudget();
      const question = {
        context,
        isAnonymous: this.#isAnonymous(context),
        pace: shape,
        steps,
        main: steps.findLastIndex((step) => step.shape === shape),
        wantsFields: fields,
        patience: patienceFor(context, terms),
        readOnly: changesNothing,
        allowance: options.budget ?? own ?? UNLIMITED,
        expires: this.#deadline(),
        signal,
        slow: way.slow,
        elsewhere: way.elsewhere,
        watch: this.#watch(context, [statement]),
      };
      const rows = options.largeValues === "buffer" ? Rows.withBuffers() : Rows.ofStrings();
      const answer = {
        resolve: (known: Result["fields"]) => {
          own?.giveAllBack();
          resolve({ rows: rows.rows, rowCount: rows.rowCount, fields: known });
        },
        reject: (error: unknown) => {
          own?.giveAllBack();
          this.#withLock(error, context, { relations: shape.relations, readOnly }, reject);
        },
      };
      new Request(way.lane, question, rows, answer).submit();
    });
  }

  /**
   * Reads of one caller that come up together. Where all of them are known to be fast they share one transaction, which
   * saves each of the others its settings and its way; but nobody's failure is another one's: then each is asked by itself.
   */
  runEach(context: Context, statements: readonly Statement[], options: SharedOptions = {}): Promise<Result>[] {
    const alone = (statement: Statement) => this.run(context, statement, { ...options, readOnly: true });
    const shapes = statements.map(({ text }) => this.#shapes.of(context.role, text));
    if (statements.length < 2 || !Shape.areFastTogether(shapes)) return statements.map(alone);
    const shared = this.#runTogether(context, statements, shapes, options);
    return statements.map((statement, index) =>
      shared.then(
        (results) => results[index]!,
        (error) => {
          if (isUnanswered(error)) throw error;
          return alone(statement);
        },
      ),
    );
  }

  #runTogether(
    context: Context,
    statements: readonly Statement[],
    shapes: readonly Shape[],
    { budget, signal }: SharedOptions,
  ): Promise<Result[]> {
    const own = budget ? null : this.#makeBudget();
    const answered = new Promise<Result[]>((resolve, reject) => {
      const last = statements.length - 1;
      const before = statements
        .slice(0, last)
        .map((statement, index) => statementStep(shapes[index]!, statement, { sync: false }));
      const terms = { ...this.#limitsFor(context), readOnly: true, timeoutMs: undefined, before };
      const steps = requestSteps(shapes[last]!, statements[last]!, context, terms);
      const collector = new RowsInTurn(statements.length);
      const { lane, slow, elsewhere } = this.#wayFor(context, "read", true);
      const question = {
        context,
        isAnonymous: this.#isAnonymous(context),
        pace: paceOfAll(shapes),
        steps,
        main: steps.length - statements.length,
        mains: statements.length,
        wantsFields: false,
        patience: patienceFor(context, terms),
        readOnly: true,
        allowance: budget ?? own!,
        expires: this.#deadline(),
        signal,
        slow,
        elsewhere,
        watch: this.#watch(context, statements),
      };
      const resolveEach = () =>
        resolve(collector.results.map(({ rows, rowCount }) => ({ rows, rowCount, fields: null })));
      new Request(lane, question, collector, { resolve: resolveEach, reject }).submit();
    });
    return answered.finally(() => own?.giveAllBack());
  }

  /**
   * The statement's first column, a text, row by row as it comes; what else the first row holds comes with the first
   * chunk. Begins with the first `next()`.
   */
  stream(context: Context, statement: Statement, options: StreamOptions): AsyncIterableIterator<Chunk> {
    const limits = this.#limitsFor(context);
    const { readOnly = true, timeoutMs = limits.statementTimeout, stallMs = STALL_MILLISECONDS } = options;
    const { separator, before, signal } = options;
    const shape = this.#shapes.of(context.role, statement.text);
    // A slow reader is no slow statement: what is limited is the silence, and we do that.
    const earlier = this.#earlierSteps(context, before);
    const terms = { ...limits, statementTimeout: 0, readOnly, timeoutMs: undefined, before: earlier };
    const steps = requestSteps(shape, statement, context, terms);
    const patience = timeoutMs === 0 ? Number.POSITIVE_INFINITY : timeoutMs;
    const main = steps.length - 1;
    return new RowStream({
      separator,
      stallTimeout: stallMs,
      signal,
      request: (collector, answer, stop) => {
        const { lane, elsewhere } = this.#wayFor(context, "stream", readOnly);
        const question = {
          context,
          isAnonymous: this.#isAnonymous(context),
          pace: shape,
          steps,
          main,
          wantsFields: false,
          patience,
          readOnly,
          allowance: rowsOf(this.#maxAnswerBytes),
          expires: this.#deadline(),
          signal: stop,
          elsewhere,
          watch: this.#watch(context, [statement]),
        };
        const reject = (error: unknown) =>
          this.#withLock(error, context, { relations: shape.relations, readOnly }, answer.reject);
        return new Request(lane, question, collector, { ...answer, reject });
      },
    });
  }

  /** Several statements of one caller between a real BEGIN and COMMIT; undone when the work rejects. */
  transaction<T>(
    context: Context,
    work: (query: Query) => Promise<T>,
    { readOnly = false, timeoutMs, isolation }: TransactionOptions = {},
  ): Promise<T> {
    const terms = { ...this.#limitsFor(context), readOnly, timeoutMs };
    const plan = {
      isAnonymous: this.#isAnonymous(context),
      lane: this.#pool.lanes.write,
      shapes: this.#shapes,
      context,
      terms,
      isolation,
      patience: patienceFor(context, terms),
      deadline: () => this.#deadline(),
      makeBudget: () => this.#makeBudget(),
      watch: (statement: Statement) => this.#watch(context, [statement]),
      explain: (error: unknown, { relations }: Shape) =>
        new Promise((resolve) => this.#withLock(error, context, { relations, readOnly }, resolve)),
    };
    const result = inTransaction(plan, work);
    return readOnly ? result : this.#noting(context, result);
  }

  /** What its caller reads next must see what it wrote, from a replica too. */
  async #noting<T>({ footing }: Context, work: Promise<T>): Promise<T> {
    if (!this.#replicas || !footing) return work;
    try {
      const result = await work;
      await this.#replicas.wrote(footing);
      return result;
    } catch (error) {
      // It may have been committed when the connection was lost, and not when Postgres has refused it.
      if (!(error instanceof DatabaseError)) this.#replicas.mayHaveWritten(footing);
      throw error;
    }
  }

  /** Goes on with the error, which says which lock it was about if that can be found out. */
  #withLock(error: unknown, context: Context, blocked: Blocked, goOn: (error: unknown) => void): void {
    const { role } = context;
    if (blocked.relations.length === 0) goOn(error);
    else if (!isLockTimeout(error)) goOn(this.#knownLocks.explain(error, role, blocked.relations));
    else {
      const options = { readOnly: true, timeoutMs: LOOK_MILLISECONDS } as const;
      this.run(context, blockingLock(blocked), options)
        .then(({ rows }) => nameLock(error, rows))
        .then(() => this.#knownLocks.remember(role, error))
        .catch(() => {})
        .finally(() => goOn(error));
    }
  }

  #earlierSteps({ role }: Context, before: Statement | undefined): Step[] {
    return before ? [statementStep(this.#shapes.of(role, before.text), before, { sync: false })] : [];
  }

  /** For what no caller may do: private functions, the catalogue, migrations. */
  asOwner<T>(work: (client: PoolClient) => Promise<T>): Promise<T> {
    return this.#owner.lend(work);
  }

  /** To be called after DDL: statements are prepared anew, those in flight excepted. */
  forgetStatements(): void {
    this.#pool.forgetStatements();
    this.#replicas?.schemaChanged();
  }

  /** One by one, in the order of their addresses. */
  replicas(): readonly ReplicaState[] {
    return this.#replicas?.state ?? [];
  }

  /** What Postgres is asked at this moment. */
  underWay(): readonly UnderWay[] {
    return this.#pool.underWay();
  }

  state(): DatabaseState {
    return this.#pool.state;
  }

  /** Refuses what is new, waits for what is under way, then closes everything. */
  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    await Promise.all([this.#pool.close(), this.#replicas?.close()]);
    await this.#owner.close();
  }

  #laneFor(shape: Shape, { lane, readOnly }: RunOptions): LaneName {
    const wanted = lane ?? (readOnly ? "read" : "write");
    return wanted === "read" && !shape.isFast ? "slow" : wanted;
  }

  /** To a replica that is far enough, if there is one. */
  #wayFor({ footing }: Context, name: LaneName, readOnly: boolean): Way {
    const { lanes } = this.#pool;
    const isShared = name === "read" || name === "slow";
    const replica = readOnly && footing ? this.#replicas?.choose(footing) : null;
    if (!replica) return { lane: lanes[name], slow: isShared ? lanes.slow : undefined, elsewhere: undefined };
    const elsewhere = { lane: lanes[name], slow: lanes.slow };
    return { lane: replica.lane(name), slow: isShared ? replica.lane("slow") : undefined, elsewhere };
  }

  #isAnonymous({ role }: Context): boolean {
    return role === this.#anonymousRole;
  }

  #limitsFor(context: Context): Limits {
    return this.#isAnonymous(context) ? this.#anonymousLimits : this.#limits;
  }

  #watch(context: Context, statements: readonly Statement[]): Watch | null {
    if (!this.#observe) return null;
    const texts = statements.map(({ text }) => text);
    return new Watch(this.#observe(context, texts));
  }

  #makeBudget(): Budget {
    return new Budget(this.#maxAnswerBytes, this.#allAnswers);
  }

  #deadline(): number {
    return performance.now() + this.#acquireTimeout;
  }
}
