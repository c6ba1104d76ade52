import pg from "pg";
import { readDuration } from "./duration.ts";
import { Shape } from "./shape.ts";
import type { Context, Field, Statement, Value } from "./statement.ts";

const TRAVEL = 5_000;
/** Bind counts them in 16 bits. */
const MOST_VALUES = 65_535;

/** Parse when needed, Bind, Execute; and Sync where the server shall end the implicit transaction. */
export type Step = {
  readonly shape: Shape;
  readonly values: readonly Value[];
  readonly sync: boolean;
  readonly isContext: boolean;
};

/** Takes what the main steps return. The bytes are valid during the call only, unless `owned`. */
export type Collector = {
  row(buffer: Buffer, start: number, end: number, owned: boolean): void;
  complete(buffer: Buffer, start: number, end: number): void;
};

export type Outcome =
  | { readonly kind: "done"; readonly milliseconds: number; readonly fields: readonly Field[] | null }
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
export type Exchange = {
  readonly steps: readonly Step[];
  /** The index of the first step whose rows are wanted; and how many of those there are, one behind the other. */
  readonly main: number;
  readonly mains: number;
  readonly collector: Collector;
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
  end(outcome: Outcome): void;
};

function constantStep(text: string, { sync }: Pick<Step, "sync">): Step {
  return { shape: new Shape(text), values: [], sync, isContext: false };
}

/**
 * Ends what a function has set for the session instead of for its transaction. It costs 2 µs of about 25; without it
 * such a setting would wait on the link for somebody else's request.
 */
const RESET = constantStep("reset all", { sync: false });
const BEGIN = constantStep("begin", { sync: false });
const BEGIN_ISOLATED = {
  "read committed": constantStep("begin isolation level read committed", { sync: false }),
  "repeatable read": constantStep("begin isolation level repeatable read", { sync: false }),
  serializable: constantStep("begin isolation level serializable", { sync: false }),
} as const;
const CHECK_CONSTRAINTS = constantStep("set constraints all immediate", { sync: true });
const COMMIT = constantStep("commit", { sync: true });
const ROLLBACK = constantStep("rollback", { sync: true });

export type Isolation = keyof typeof BEGIN_ISOLATED;

export type Terms = {
  readonly readOnly: boolean;
  /** What a role's own setting may override. */
  readonly statementTimeout: number;
  /** How long it may wait for each lock, where it has no time limit of its own; a role's own setting may override this, too. */
  readonly lockTimeout: number;
  /** What nothing overrides. */
  readonly timeoutMs: number | undefined;
};

type RequestTerms = Terms & {
  /** What the caller executes in the same transaction before the statement. */
  readonly before: readonly Step[];
};

/** Settings, statement, Sync: one implicit transaction. */
export function requestSteps(shape: Shape, statement: Statement, context: Context, terms: RequestTerms): Step[] {
  return [RESET, contextStep(context, terms), ...terms.before, statementStep(shape, statement, { sync: true })];
}

/**
 * The same, undone. Deferred constraints are checked first, as they would be at commit. The rollback has a Sync of its
 * own, because an error would have the server skip it.
 */
export function undoneSteps(shape: Shape, statement: Statement, context: Context, terms: RequestTerms): Step[] {
  const step = statementStep(shape, statement, { sync: false });
  return [BEGIN, RESET, contextStep(context, terms), ...terms.before, step, CHECK_CONSTRAINTS, ROLLBACK];
}

export function openingSteps(context: Context, terms: Terms, isolation: Isolation | undefined): Step[] {
  return [isolation ? BEGIN_ISOLATED[isolation] : BEGIN, RESET, contextStep(context, terms)];
}

export function statementStep(shape: Shape, { values }: Statement, { sync }: Pick<Step, "sync">): Step {
  return { shape, values: checked(values), sync, isContext: false };
}

export function endingStep(how: "commit" | "rollback"): Step {
  return how === "commit" ? COMMIT : ROLLBACK;
}

function contextStep({ role, settings }: Context, terms: Terms): Step {
  const { readOnly, statementTimeout, lockTimeout, timeoutMs } = terms;
  // "none" would mean the login itself. As a name it exists in no database, and neither does "".
  const ofLocks = timeoutMs === undefined ? lockTimeout : 0;
  const values = [role === "none" ? "" : role, String(statementTimeout), String(ofLocks)];
  if (readOnly) values.push("on");
  for (const [, value] of settings) values.push(value);
  if (timeoutMs !== undefined) values.push(String(timeoutMs));
  const shape = contextShape(settings, { readOnly, isTimed: timeoutMs !== undefined });
  return { shape, values: checked(values), sync: false, isContext: true };
}

/** Nothing that the encoder would choke on in the middle of a message may come as far as that. */
function checked(values: readonly Value[]): readonly Value[] {
  if (values.length > MOST_VALUES) throw new RangeError(`A statement takes at most ${MOST_VALUES} values`);
  for (const value of values) {
    if (value !== null && typeof value !== "string" && !Buffer.isBuffer(value)) {
      throw new TypeError(`A statement's values are strings, Buffers or null, not ${typeof value}`);
    }
  }
  return values;
}

/** How long the server may take: what it was told, and a while for the way. */
export function patienceFor({ settings }: Context, { statementTimeout, timeoutMs }: Terms): number {
  const setting = settings.findLast(([name]) => name === "statement_timeout");
  const limit = timeoutMs ?? (setting ? readDuration(setting[1]) : statementTimeout);
  return limit ? limit + TRAVEL : Number.POSITIVE_INFINITY;
}

type Manner = { readonly readOnly: boolean; readonly isTimed: boolean };
type KnownShape = Manner & { readonly names: readonly string[]; readonly shape: Shape };

/** By how many settings there are. */
const contextShapes: KnownShape[][] = [];

/** Names are part of the text: Postgres takes a tenth longer for a request whose settings have theirs among the values. */
function contextShape(settings: Context["settings"], { readOnly, isTimed }: Manner): Shape {
  contextShapes[settings.length] ??= [];
  const alike = contextShapes[settings.length]!;
  for (const known of alike) {
    const isSame = known.readOnly === readOnly && known.isTimed === isTimed;
    if (isSame && known.names.every((name, index) => name === settings[index]![0])) return known.shape;
  }
  const names = settings.map(([name]) => name);
  const all = ["role", "statement_timeout", "lock_timeout"];
  if (readOnly) all.push("transaction_read_only");
  all.push(...names);
  if (isTimed) all.push("statement_timeout");
  const calls = all.map((name, index) => `set_config(${pg.escapeLiteral(name)},$${index + 1},true)`);
  const shape = new Shape(`select ${calls}`);
  alike.push({ readOnly, isTimed, names, shape });
  return shape;
}
