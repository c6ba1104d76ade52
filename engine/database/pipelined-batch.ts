import pg, { type DatabaseError } from "pg";
import * as message from "../pg-client/server-messages.ts";
import { nameOfType, protocolViolation, type ResultField, readFields } from "../pg-client/server-messages.ts";
import type { PreparedStatement } from "./prepared-statements.ts";
import type { ParameterValue, Statement, StatementContext } from "./statement.ts";
import { StatementShape } from "./statement-shape.ts";

const MILLISECONDS_PER_UNIT: Readonly<Record<string, number>> = {
  us: 0.001,
  ms: 1,
  s: 1_000,
  min: 60_000,
  h: 3_600_000,
  d: 86_400_000,
};

/** Both fail in Bind, without side effects: the prepared statement does not exist (26000), or its result columns have changed (0A000). */
const STALE_CODES = new Set(["26000", "0A000"]);
/** SQLSTATE class 42: an object that was valid at Parse has changed since, for example a column's type. */
const CHANGED_OBJECT = /^42/;

const NETWORK_ALLOWANCE_MS = 5_000;
/** Bind has a 16-bit parameter count. */
const MAX_PARAMETERS = 65_535;

/** Parse if needed, Bind and Execute; Sync if it ends the implicit transaction. */
export type BatchStep = {
  readonly shape: StatementShape;
  readonly values: readonly ParameterValue[];
  readonly sync: boolean;
  readonly isContext: boolean;
  /** It runs before the request's own statement. */
  readonly isPreceding?: true;
};

/** Receives the results of the main steps. The bytes are valid during the call only, unless `owned`. */
export type ResultCollector = {
  row(buffer: Buffer, start: number, end: number, owned: boolean): void;
  complete(buffer: Buffer, start: number, end: number): void;
};

export type BatchOutcome =
  | { readonly kind: "done"; readonly milliseconds: number; readonly fields: readonly ResultField[] | null }
  | {
      readonly kind: "refused";
      readonly milliseconds: number;
      readonly error: Error;
      /** It did not start, because the prepared statement was missing or outdated; it may run again. */
      readonly isStale: boolean;
      /** It was cancelled because other requests wait; it may run again in the slow pool. */
      readonly isInterrupted: boolean;
    }
  /** `sent` is false if the server cannot have received it. */
  | { readonly kind: "lost"; readonly cause: Error; readonly sent: boolean };

/** One write to the server and all responses to it. */
export type PipelinedBatch = {
  readonly steps: readonly BatchStep[];
  /** The index of the first step whose rows are collected, and the number of such steps, in sequence. */
  readonly main: number;
  readonly mainCount: number;
  readonly collector: ResultCollector;
  readonly wantsFields: boolean;
  /** Prepares its statements anew, under new names, regardless of the connection's cache. */
  readonly fresh: boolean;
  /** Whether the transaction stays open after the batch. */
  readonly keepsTransaction: boolean;
  /** For how many milliseconds the server may be silent. */
  readonly responseTimeoutMs: number;
  /** Milliseconds that it is likely to take. */
  readonly expected: number;
  /** Whether it may be cancelled in favor of others, and run again. */
  readonly isInterruptible: boolean;
  /** Whether the caller is gone. */
  readonly isAbandoned: boolean;
  /** Called with the length of each row of a main step; rejected rows are dropped. */
  admits(bytes: number): boolean;
  /** Called once; not before ReadyForQuery unless the connection is lost. */
  end(outcome: BatchOutcome): void;
};

function makeConstantStep(text: string, { sync }: Pick<BatchStep, "sync">): BatchStep {
  return { shape: new StatementShape(text), values: [], sync, isContext: false };
}

/**
 * Resets settings that a function changed for the session instead of for its transaction. Costs 2 of about 25 µs;
 * without it such a setting would apply to the next caller's request.
 */
const RESET = makeConstantStep("reset all", { sync: false });
const BEGIN = makeConstantStep("begin", { sync: false });
const BEGIN_ISOLATED = {
  "read committed": makeConstantStep("begin isolation level read committed", { sync: false }),
  "repeatable read": makeConstantStep("begin isolation level repeatable read", { sync: false }),
  serializable: makeConstantStep("begin isolation level serializable", { sync: false }),
} as const;
const CHECK_CONSTRAINTS = makeConstantStep("set constraints all immediate", { sync: true });
const COMMIT = makeConstantStep("commit", { sync: true });
const SET_TIMEOUT = new StatementShape("select pg_catalog.set_config('statement_timeout', $1, true)");
const ROLLBACK = makeConstantStep("rollback", { sync: true });

export type IsolationLevel = keyof typeof BEGIN_ISOLATED;

export type StatementLimits = {
  readonly readOnly: boolean;
  /** Overridden by the role's own setting. */
  readonly statementTimeout: number;
  /** Applies if the statement has no time limit of its own; overridden by the role's own setting. */
  readonly lockTimeout: number;
  /** Overrides every other statement timeout. */
  readonly timeoutMs: number | undefined;
};

type RequestLimits = StatementLimits & {
  /** Steps to run before the statement in the same transaction. */
  readonly before: readonly BatchStep[];
};

/** Settings, statement, Sync: one implicit transaction. */
export function makeRequestSteps(
  shape: StatementShape,
  statement: Statement,
  context: StatementContext,
  terms: RequestLimits,
): BatchStep[] {
  return [RESET, makeContextStep(context, terms), ...terms.before, makeStatementStep(shape, statement, { sync: true })];
}

/**
 * The same, rolled back. Deferred constraints are checked first, as at commit. The rollback has a Sync of its own,
 * because after an error the server skips to the next Sync.
 */
export function makeRolledBackSteps(
  shape: StatementShape,
  statement: Statement,
  context: StatementContext,
  terms: RequestLimits,
): BatchStep[] {
  const step = makeStatementStep(shape, statement, { sync: false });
  return [BEGIN, RESET, makeContextStep(context, terms), ...terms.before, step, CHECK_CONSTRAINTS, ROLLBACK];
}

/** How the sessions of a server or router run the transactions of requests. */
export type TransactionTraits = {
  /**
   * Whether requests are sent as BEGIN … COMMIT instead of as the implicit transaction of the statements before a Sync,
   * which some routers distribute over several sessions.
   */
  readonly isExplicit: boolean;
  /** Whether a setting that a function changes for its session would apply to later requests. */
  readonly keepsSettings: boolean;
};

type StepSequence = Pick<PipelinedBatch, "steps" | "main">;

/**
 * The steps as this server or router requires them. COMMIT shares its Sync with the statement, as each Sync costs a
 * write of the server: after an error the connection rolls back. Statements that failed lately have a Sync of their own.
 */
export function adaptSteps(batch: StepSequence, { isExplicit, keepsSettings }: TransactionTraits): StepSequence {
  const { steps, main } = batch;
  if (!isExplicit) return batch;
  const isImplicit = steps[0] === RESET;
  if (!isImplicit && (keepsSettings || steps[1] !== RESET)) return batch;
  const [opening, rest] = isImplicit ? [BEGIN, steps.slice(1)] : [steps[0]!, steps.slice(2)];
  const beginning = keepsSettings ? [opening, RESET] : [opening];
  const position = main + beginning.length - (steps.length - rest.length);
  if (!isImplicit) return { steps: [...beginning, ...rest], main: position };
  const mayFail = rest.some(({ shape }) => shape.mayFail);
  const statements = mayFail ? rest : rest.with(-1, { ...rest.at(-1)!, sync: false });
  return { steps: [...beginning, ...statements, COMMIT], main: position };
}

/** One transaction of the login itself. */
export function makeLoginSteps(steps: readonly BatchStep[]): BatchStep[] {
  return [RESET, ...steps];
}

export function makeOpeningSteps(
  context: StatementContext,
  terms: StatementLimits,
  isolation: IsolationLevel | undefined,
): BatchStep[] {
  return [isolation ? BEGIN_ISOLATED[isolation] : BEGIN, RESET, makeContextStep(context, terms)];
}

export function makeStatementStep(
  shape: StatementShape,
  { values }: Statement,
  { sync }: Pick<BatchStep, "sync">,
): BatchStep {
  return { shape, values: checkValues(values), sync, isContext: false };
}

export function beginningStep(): BatchStep {
  return BEGIN;
}

/** Ends a transaction that has failed. */
export function makeRollback(end: PipelinedBatch["end"]): PipelinedBatch {
  return {
    steps: [ROLLBACK],
    main: 0,
    mainCount: 0,
    collector: { row() {}, complete() {} },
    wantsFields: false,
    fresh: true,
    keepsTransaction: false,
    responseTimeoutMs: NETWORK_ALLOWANCE_MS,
    expected: 0,
    isInterruptible: false,
    isAbandoned: false,
    admits: () => true,
    end,
  };
}

export function endingStep(how: "commit" | "rollback"): BatchStep {
  return how === "commit" ? COMMIT : ROLLBACK;
}

function makeContextStep({ role, settings }: StatementContext, terms: StatementLimits): BatchStep {
  const { readOnly, statementTimeout, lockTimeout, timeoutMs } = terms;
  // The role "none" would select the login itself; "" names no role, so it is rejected.
  const lockLimit = timeoutMs === undefined ? lockTimeout : 0;
  const values = [role === "none" ? "" : role, String(statementTimeout), String(lockLimit)];
  if (readOnly) values.push("on");
  for (const [, value] of settings) values.push(value);
  if (timeoutMs !== undefined) values.push(String(timeoutMs));
  const shape = contextShapeFor(settings, { readOnly, isTimed: timeoutMs !== undefined });
  return { shape, values: checkValues(values), sync: false, isContext: true };
}

/** Rejects values that would fail in the encoder in the middle of a message. */
function checkValues(values: readonly ParameterValue[]): readonly ParameterValue[] {
  if (values.length > MAX_PARAMETERS) throw new RangeError(`A statement takes at most ${MAX_PARAMETERS} values`);
  for (const value of values) {
    if (value !== null && typeof value !== "string" && !Buffer.isBuffer(value)) {
      throw new TypeError(`A statement's values are strings, Buffers or null, not ${typeof value}`);
    }
  }
  return values;
}

/** The statement timeout plus an allowance for the network. */
export function responseTimeoutFor(context: StatementContext, limits: StatementLimits): number {
  return statementTimeoutFor(context, limits) + NETWORK_ALLOWANCE_MS;
}

/** In milliseconds; infinite if there is no limit. */
export function statementTimeoutFor(
  { settings }: StatementContext,
  { statementTimeout, timeoutMs }: StatementLimits,
): number {
  const setting = settings.findLast(([name]) => name === "statement_timeout");
  const limit = timeoutMs ?? (setting ? parseDuration(setting[1]) : statementTimeout);
  return limit || Number.POSITIVE_INFINITY;
}

/** Sets the timeout of the statements after it in the transaction. */
export function makeTimeoutStep(milliseconds: number): BatchStep {
  return { shape: SET_TIMEOUT, values: [String(milliseconds)], sync: false, isContext: false };
}

/** Checks deferred constraints within the statement timeout, which does not apply to COMMIT. */
export function constraintsStep(): BatchStep {
  return CHECK_CONSTRAINTS;
}

type ContextStepOptions = { readonly readOnly: boolean; readonly isTimed: boolean };
type CachedContextShape = ContextStepOptions & { readonly names: readonly string[]; readonly shape: StatementShape };

/** By number of settings. */
const contextShapes: CachedContextShape[][] = [];

/** Setting names are part of the text: as parameters they would make a request 10 % slower. */
function contextShapeFor(
  settings: StatementContext["settings"],
  { readOnly, isTimed }: ContextStepOptions,
): StatementShape {
  contextShapes[settings.length] ??= [];
  const candidates = contextShapes[settings.length]!;
  for (const known of candidates) {
    const isSame = known.readOnly === readOnly && known.isTimed === isTimed;
    if (isSame && known.names.every((name, index) => name === settings[index]![0])) return known.shape;
  }
  const names = settings.map(([name]) => name);
  const all = ["role", "statement_timeout", "lock_timeout"];
  if (readOnly) all.push("transaction_read_only");
  all.push(...names);
  if (isTimed) all.push("statement_timeout");
  const calls = all.map((name, index) => `set_config(${pg.escapeLiteral(name)},$${index + 1},true)`);
  const shape = new StatementShape(`select ${calls}`);
  candidates.push({ readOnly, isTimed, names, shape });
  return shape;
}

/** Tracks the server's progress through a batch from its responses. */
export class BatchProgress {
  readonly exchange: PipelinedBatch;
  /** The steps that were sent, and the index of the first one whose rows are collected. */
  readonly steps: readonly BatchStep[];
  readonly main: number;
  /** One per step. */
  readonly prepared: readonly PreparedStatement[];
  /** The expected duration when the batch was sent. */
  readonly expected: number;
  error: Error | null = null;
  /** Whether the error means that a prepared statement is missing or outdated. */
  isStale = false;
  /** The index of the step with the error. */
  failedStep = -1;

  #step = 0;
  /** The index of the step whose Sync is answered next. */
  #sync: number;
  /** Whether the current step's Bind has completed. */
  #bound = false;

  constructor(exchange: PipelinedBatch, { steps, main }: StepSequence, prepared: readonly PreparedStatement[]) {
    this.exchange = exchange;
    this.steps = steps;
    this.main = main;
    this.prepared = prepared;
    this.expected = exchange.expected;
    this.#sync = steps.findIndex(({ sync }) => sync);
  }

  /** The step that the server executes; undefined during the commit after the last step before a Sync. */
  get step(): BatchStep | undefined {
    return this.#step <= this.#sync ? this.steps[this.#step] : undefined;
  }

  /** Whether an error leaves its transaction open, because COMMIT is skipped. */
  get leavesOpen(): boolean {
    return this.steps.at(-1) === COMMIT && this.steps.length > 1 && !this.steps.at(-2)!.sync;
  }

  get #isMain(): boolean {
    return this.#step >= this.main && this.#step < this.main + this.exchange.mainCount;
  }

  /** Decides whether a message that spans several chunks is collected or dropped. */
  admits(type: number, bytes: number): boolean {
    return type !== message.DATA_ROW || (this.#isMain && this.exchange.admits(bytes));
  }

  /** Processes a response other than an error or ReadyForQuery. */
  take(type: number, buffer: Buffer, start: number, end: number, owned: boolean): void {
    const isMain = this.#isMain;
    switch (type) {
      case message.DATA_ROW:
        // An owned message was admitted before it was collected.
        if (isMain && (owned || this.exchange.admits(end - start))) {
          this.exchange.collector.row(buffer, start, end, owned);
        }
        break;
      case message.COMMAND_COMPLETE:
      case message.EMPTY_QUERY:
        if (isMain) this.exchange.collector.complete(buffer, start, end);
        this.#step++;
        this.#bound = false;
        break;
      case message.PARSE_COMPLETE:
        this.#statement.ready = true;
        break;
      case message.BIND_COMPLETE:
        this.#bound = true;
        break;
      case message.ROW_DESCRIPTION:
        this.#statement.fields = readFields(buffer, start, end);
        break;
      case message.NO_DATA:
        this.#statement.fields = [];
        break;
      default:
        // For example COPY, which uses another subprotocol.
        throw new Error(`The server sent a message of type ${nameOfType(type)}, which none of ours calls for`);
    }
  }

  get #statement(): PreparedStatement {
    const statement = this.prepared[this.#step];
    if (!statement) throw protocolViolation("more results than there are statements");
    return statement;
  }

  /** Records the error; returns the prepared statement to drop if the error is about it. */
  fail(error: DatabaseError): PreparedStatement | null {
    const isStale = this.step !== undefined && !this.#bound && this.#isOutdated(error.code ?? "");
    if (!this.error) {
      this.isStale = isStale;
      this.failedStep = this.#step;
    }
    this.error ??= error;
    return isStale ? this.prepared[this.#step]! : null;
  }

  #isOutdated(code: string): boolean {
    return STALE_CODES.has(code) || (CHANGED_OBJECT.test(code) && this.prepared[this.#step]!.ready);
  }

  /** Processes ReadyForQuery, to which the server skips after an error; false if another Sync follows. */
  sync(): boolean {
    if (!this.error && this.#step !== this.#sync + 1) throw protocolViolation("fewer or more results than statements");
    this.#step = this.#sync + 1;
    this.#sync = this.steps.findIndex(({ sync }, index) => sync && index >= this.#step);
    this.#bound = false;
    return this.#step === this.steps.length;
  }
}

/** Parses a duration as in Postgres's settings to milliseconds: `8000`, `8s`, `1.5 min`. Null if invalid. */
export function parseDuration(text: string): number | null {
  const match = /^\s*(\d+(?:\.\d+)?)\s*([a-z]*)\s*$/.exec(text);
  const unit = MILLISECONDS_PER_UNIT[match?.[2] || "ms"];
  return match && unit !== undefined ? Number(match[1]) * unit : null;
}

/** The shorter of two limits; 0 is no limit. */
export function shorterLimit(one: number, other: number): number {
  return one === 0 || other === 0 ? Math.max(one, other) : Math.min(one, other);
}
