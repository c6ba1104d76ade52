import type { DatabaseError } from "pg";
import * as message from "../client/server-messages.ts";
import { nameOfType, protocolViolation, type ResultField, readFields } from "../client/server-messages.ts";
import {
  type BatchStep,
  endingStep,
  isEndingStep,
  isOwnStep,
  leavesTransactionOpen,
  type StatementLimits,
  type StepSequence,
} from "./batch-steps.ts";
import type { PreparedStatement } from "./prepared-statements.ts";
import type { ShareHolder, StatementContext } from "./statement.ts";

const MILLISECONDS_PER_UNIT: Readonly<Record<string, number>> = {
  us: 0.001,
  ms: 1,
  s: 1_000,
  min: 60_000,
  h: 3_600_000,
  d: 86_400_000,
};

/** SQLSTATEs of errors in Bind, without side effects: the prepared statement does not exist (26000), or its result columns have changed (0A000). */
const STALE_CODES = new Set(["26000", "0A000"]);
/** SQLSTATE class 42: an object that was valid at Parse has changed since, for example a column's type. */
const CHANGED_OBJECT = /^42/;

const NETWORK_ALLOWANCE_MS = 5_000;
/** Receives the results of the main steps. The bytes are valid during the call only, unless `owned`. */
export type ResultCollector = {
  row(buffer: Buffer, start: number, end: number, owned: boolean): void;
  complete(buffer: Buffer, start: number, end: number): void;
};

export type RestartableCollector = ResultCollector & {
  /** Discards the rows so far; false if some were already handed out. */
  restart(): boolean;
};

/** Receives the end of the main steps, after all runs. */
export type ExecutionCallbacks = {
  resolve(fields: readonly ResultField[] | null): void;
  reject(error: unknown): void;
};

export type BatchOutcome =
  | { readonly kind: "done"; readonly milliseconds: number; readonly fields: readonly ResultField[] | null }
  | {
      readonly kind: "refused";
      readonly milliseconds: number;
      readonly error: Error;
      /** True if it did not start, because the prepared statement was missing or outdated; it may run again. */
      readonly isStale: boolean;
      /** True if it was cancelled because other requests wait; it may run again in the slow pool. */
      readonly isInterrupted: boolean;
    }
  /** `sent` is false if the server cannot have received it. */
  | { readonly kind: "lost"; readonly cause: Error; readonly sent: boolean };

/** One write to the server and all responses to it. */
export type PipelinedBatch = StepSequence & {
  readonly collector: ResultCollector;
  readonly wantsFields: boolean;
  /** True if it prepares its statements again, under new names, regardless of the connection's cache. */
  readonly fresh: boolean;
  /** True if the transaction stays open after the batch. */
  readonly keepsTransaction: boolean;
  /** The maximum silence of the server, in milliseconds. */
  readonly responseTimeoutMs: number;
  /** The expected duration in milliseconds. */
  readonly expected: number;
  /** The holder of the share that the batch takes if it runs long; null if it must not be cancelled in favor of others and run again. */
  readonly interruptible: ShareHolder | null;
  /** True if the caller is gone. */
  readonly isAbandoned: boolean;
  /** Called with the length of each row of a main step; rejected rows are dropped. */
  admits(bytes: number): boolean;
  /** Called once; not before ReadyForQuery unless the connection is lost. */
  end(outcome: BatchOutcome): void;
};

/** Ends a transaction that has failed. */
export function makeRollback(end: PipelinedBatch["end"]): PipelinedBatch {
  return {
    steps: [endingStep("rollback")],
    main: 0,
    mainCount: 0,
    collector: { row() {}, complete() {} },
    wantsFields: false,
    fresh: true,
    keepsTransaction: false,
    responseTimeoutMs: NETWORK_ALLOWANCE_MS,
    expected: 0,
    interruptible: null,
    isAbandoned: false,
    admits: () => true,
    end,
  };
}

/** The statement timeout plus an allowance for the network. */
export function responseTimeoutFor(context: StatementContext, limits: StatementLimits): number {
  return statementTimeoutFor(context, limits) + NETWORK_ALLOWANCE_MS;
}

/** Returns the statement timeout in milliseconds; infinite if there is no limit. */
export function statementTimeoutFor(
  { settings }: StatementContext,
  { statementTimeout, timeoutMs }: StatementLimits,
): number {
  const setting = settings.findLast(([name]) => name === "statement_timeout");
  const limit = timeoutMs ?? (setting ? parseDuration(setting[1]) : statementTimeout);
  return limit || Number.POSITIVE_INFINITY;
}

/** Tracks the server's progress through a batch from its responses. */
export class BatchProgress {
  readonly exchange: PipelinedBatch;
  /** The steps that were sent, and the index of the first one whose rows are collected. */
  readonly steps: readonly BatchStep[];
  readonly main: number;
  readonly #mainCount: number;
  /** The prepared statement of each step. */
  readonly prepared: readonly PreparedStatement[];
  /** The expected duration when the batch was sent. */
  readonly expected: number;
  error: Error | null = null;
  /** True if the error means that a prepared statement is missing or outdated. */
  isStale = false;
  /** The index of the step with the error. */
  failedStep = -1;

  #step = 0;
  /** The index of the step whose Sync is answered next. */
  #sync: number;
  /** True if the current step's Bind has completed. */
  #bound = false;

  constructor(
    exchange: PipelinedBatch,
    { steps, main, mainCount }: StepSequence,
    prepared: readonly PreparedStatement[],
  ) {
    this.exchange = exchange;
    this.steps = steps;
    this.main = main;
    this.#mainCount = mainCount;
    this.prepared = prepared;
    this.expected = exchange.expected;
    this.#sync = steps.findIndex(({ sync }) => sync);
  }

  /** The step that the server executes; undefined during the commit after the last step before a Sync. */
  get step(): BatchStep | undefined {
    return this.#step <= this.#sync ? this.steps[this.#step] : undefined;
  }

  /** True if an error leaves the transaction open, because COMMIT is skipped. */
  get leavesOpen(): boolean {
    return leavesTransactionOpen(this.steps);
  }

  get #isMain(): boolean {
    if (this.#step < this.main || this.#step >= this.main + this.#mainCount) return false;
    return this.#mainCount === 1 || isOwnStep(this.steps[this.#step]!);
  }

  /** The index of the failed statement; null if the settings were rejected before the first one, or the commit was. */
  get failedStatement(): number | null {
    const { main, failedStep } = this;
    if (failedStep < main) return this.steps[failedStep]?.isPreceding ? 0 : null;
    if (failedStep >= main + this.#mainCount || isEndingStep(this.steps[failedStep]!)) return null;
    return this.steps.slice(main, failedStep).filter(isOwnStep).length;
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
        // COPY, for example, uses another subprotocol.
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
