import pg, { type DatabaseError } from "pg";
import { readFields } from "./message-decoder.ts";
import * as message from "./message-encoder.ts";
import type { PreparedStatement } from "./prepared-statements.ts";
import type { ParameterValue, ResultField, Statement, StatementContext } from "./statement.ts";
import { StatementShape } from "./statement-shape.ts";

const MILLISECONDS_PER_UNIT: Readonly<Record<string, number>> = {
  us: 0.001,
  ms: 1,
  s: 1_000,
  min: 60_000,
  h: 3_600_000,
  d: 86_400_000,
};

/** Both leave nothing behind, since Bind failed: the statement is gone (26000), or its columns have changed (0A000). */
const STALE_CODES = new Set(["26000", "0A000"]);
/** What was understood before is not any more: a column has another type now, or is not there. */
const CHANGED_OBJECT = /^42/;

const NETWORK_ALLOWANCE_MS = 5_000;
/** Bind counts them in 16 bits. */
const MAX_PARAMETERS = 65_535;

/** Parse when needed, Bind, Execute; and Sync where the server shall end the implicit transaction. */
export type BatchStep = {
  readonly shape: StatementShape;
  readonly values: readonly ParameterValue[];
  readonly sync: boolean;
  readonly isContext: boolean;
};

/** Takes what the main steps return. The bytes are valid during the call only, unless `owned`. */
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
      /** It never began, because the prepared statement was gone or outdated; it may run again. */
      readonly isStale: boolean;
      /** It was cancelled since others wait; it may run again where it keeps nobody waiting. */
      readonly isInterrupted: boolean;
    }
  /** `sent` is false when the server cannot have seen it. */
  | { readonly kind: "lost"; readonly cause: Error; readonly sent: boolean };

/** One write to the server and everything that comes back for it. */
export type PipelinedBatch = {
  readonly steps: readonly BatchStep[];
  /** The index of the first step whose rows are wanted; and how many of those there are, one behind the other. */
  readonly main: number;
  readonly mains: number;
  readonly collector: ResultCollector;
  readonly wantsFields: boolean;
  /** Parses by itself, under new names, whatever the link believes to have prepared. */
  readonly fresh: boolean;
  /** It is part of a transaction that goes on after it. */
  readonly keepsTransaction: boolean;
  /** For how many milliseconds the server may be silent. */
  readonly patience: number;
  /** Milliseconds that it is likely to take. */
  readonly expected: number;
  /** It may be cancelled for others, since it can run again. */
  readonly isInterruptible: boolean;
  /** Nobody waits for it any more. */
  readonly isAbandoned: boolean;
  /** Asked about the length of each row of a main step; one that is not admitted is never held, nor shown to the collector. */
  admits(bytes: number): boolean;
  /** Called once; never before ReadyForQuery unless the link is lost. */
  end(outcome: BatchOutcome): void;
};

function makeConstantStep(text: string, { sync }: Pick<BatchStep, "sync">): BatchStep {
  return { shape: new StatementShape(text), values: [], sync, isContext: false };
}

/**
 * Ends what a function has set for the session instead of for its transaction. It costs 2 µs of about 25; without it
 * such a setting would wait on the link for somebody else's request.
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
const ROLLBACK = makeConstantStep("rollback", { sync: true });

export type IsolationLevel = keyof typeof BEGIN_ISOLATED;

export type StatementLimits = {
  readonly readOnly: boolean;
  /** What a role's own setting may override. */
  readonly statementTimeout: number;
  /** How long it may wait for each lock, where it has no time limit of its own; a role's own setting may override this, too. */
  readonly lockTimeout: number;
  /** What nothing overrides. */
  readonly timeoutMs: number | undefined;
};

type RequestLimits = StatementLimits & {
  /** What the caller executes in the same transaction before the statement. */
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
 * The same, undone. Deferred constraints are checked first, as they would be at commit. The rollback has a Sync of its
 * own, because an error would have the server skip it.
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

export function endingStep(how: "commit" | "rollback"): BatchStep {
  return how === "commit" ? COMMIT : ROLLBACK;
}

function makeContextStep({ role, settings }: StatementContext, terms: StatementLimits): BatchStep {
  const { readOnly, statementTimeout, lockTimeout, timeoutMs } = terms;
  // "none" would mean the login itself. As a name it exists in no database, and neither does "".
  const lockLimit = timeoutMs === undefined ? lockTimeout : 0;
  const values = [role === "none" ? "" : role, String(statementTimeout), String(lockLimit)];
  if (readOnly) values.push("on");
  for (const [, value] of settings) values.push(value);
  if (timeoutMs !== undefined) values.push(String(timeoutMs));
  const shape = contextShapeFor(settings, { readOnly, isTimed: timeoutMs !== undefined });
  return { shape, values: checkValues(values), sync: false, isContext: true };
}

/** Nothing that the encoder would choke on in the middle of a message may come as far as that. */
function checkValues(values: readonly ParameterValue[]): readonly ParameterValue[] {
  if (values.length > MAX_PARAMETERS) throw new RangeError(`A statement takes at most ${MAX_PARAMETERS} values`);
  for (const value of values) {
    if (value !== null && typeof value !== "string" && !Buffer.isBuffer(value)) {
      throw new TypeError(`A statement's values are strings, Buffers or null, not ${typeof value}`);
    }
  }
  return values;
}

/** How long the server may take: what it was told, and a while for the way. */
export function responseTimeoutFor(
  { settings }: StatementContext,
  { statementTimeout, timeoutMs }: StatementLimits,
): number {
  const setting = settings.findLast(([name]) => name === "statement_timeout");
  const limit = timeoutMs ?? (setting ? parseDuration(setting[1]) : statementTimeout);
  return limit ? limit + NETWORK_ALLOWANCE_MS : Number.POSITIVE_INFINITY;
}

type ContextStepOptions = { readonly readOnly: boolean; readonly isTimed: boolean };
type CachedContextShape = ContextStepOptions & { readonly names: readonly string[]; readonly shape: StatementShape };

/** By how many settings there are. */
const contextShapes: CachedContextShape[][] = [];

/** Names are part of the text: Postgres takes a tenth longer for a request whose settings have theirs among the values. */
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

/** How far the server has come with an exchange, as its answers tell. */
export class BatchProgress {
  readonly exchange: PipelinedBatch;
  /** One for each step. */
  readonly prepared: readonly PreparedStatement[];
  /** As it was when it was sent. */
  readonly expected: number;
  error: Error | null = null;
  /** The error is about a prepared statement and not about what it was to do. */
  isStale = false;

  #step = 0;
  /** The index of the step whose Sync the server will answer next. */
  #sync: number;
  /** The current step's Bind has been answered. */
  #bound = false;

  constructor(exchange: PipelinedBatch, prepared: readonly PreparedStatement[]) {
    this.exchange = exchange;
    this.prepared = prepared;
    this.expected = exchange.expected;
    this.#sync = exchange.steps.findIndex(({ sync }) => sync);
  }

  /** What the server is at; behind the last step before a Sync it is the commit. */
  get step(): BatchStep | undefined {
    return this.#step <= this.#sync ? this.exchange.steps[this.#step] : undefined;
  }

  get #isMain(): boolean {
    const { main, mains } = this.exchange;
    return this.#step >= main && this.#step < main + mains;
  }

  /** Asked before a message is collected that comes in pieces; what is not admitted is dropped as it comes. */
  admits(type: number, bytes: number): boolean {
    return type !== message.DATA_ROW || !this.#isMain || this.exchange.admits(bytes);
  }

  /** Takes an answer that is neither an error nor ReadyForQuery. */
  take(type: number, buffer: Buffer, start: number, end: number, owned: boolean): void {
    const isMain = this.#isMain;
    switch (type) {
      case message.DATA_ROW:
        // What is owned was admitted before it was collected.
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
        this.prepared[this.#step]!.ready = true;
        break;
      case message.BIND_COMPLETE:
        this.#bound = true;
        break;
      case message.ROW_DESCRIPTION:
        this.prepared[this.#step]!.fields = readFields(buffer, start);
        break;
      case message.NO_DATA:
        this.prepared[this.#step]!.fields = [];
        break;
      default:
        // COPY, for one, would have us speak another protocol.
        throw new Error(`The server sent a message of type ${String.fromCharCode(type)}, which none of ours calls for`);
    }
  }

  /** Returns the prepared statement that is of no use any more, if that is what the error is about. */
  fail(error: DatabaseError): PreparedStatement | null {
    this.error ??= error;
    this.isStale = this.step !== undefined && !this.#bound && this.#isOutdated(error.code ?? "");
    return this.isStale ? this.prepared[this.#step]! : null;
  }

  #isOutdated(code: string): boolean {
    return STALE_CODES.has(code) || (CHANGED_OBJECT.test(code) && this.prepared[this.#step]!.ready);
  }

  /** ReadyForQuery, to which the server skips after an error; false when another Sync is to be answered. */
  sync(): boolean {
    const { steps } = this.exchange;
    this.#step = this.#sync + 1;
    this.#sync = steps.findIndex(({ sync }, index) => sync && index >= this.#step);
    this.#bound = false;
    return this.#step === steps.length;
  }
}

/** A duration as Postgres's settings spell it, in milliseconds: `8000`, `8s`, `1.5 min`. Null when it is none. */
export function parseDuration(text: string): number | null {
  const match = /^\s*(\d+(?:\.\d+)?)\s*([a-z]*)\s*$/.exec(text);
  const unit = MILLISECONDS_PER_UNIT[match?.[2] || "ms"];
  return match && unit !== undefined ? Number(match[1]) * unit : null;
}

/** The shorter of two limits; 0 is none. */
export function shorterLimit(one: number, other: number): number {
  return one === 0 || other === 0 ? Math.max(one, other) : Math.min(one, other);
}
