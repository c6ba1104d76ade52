import pg from "pg";
import { makeCallerStatements, makeSettingStatement } from "../client/setting-statements.ts";
import { BECOME_CALLER, BECOME_LOGIN } from "./login-role.ts";
import type { ParameterValue, Statement, StatementContext } from "./statement.ts";
import { StatementShape } from "./statement-shape.ts";

/** The maximum number of parameters: Bind has a 16-bit count. */
const MAX_PARAMETERS = 65_535;

/** A step of a batch: Parse if needed, Bind and Execute, and Sync if the step ends the implicit transaction. */
export type BatchStep = {
  readonly shape: StatementShape;
  readonly values: readonly ParameterValue[];
  readonly sync: boolean;
  readonly isContext: boolean;
  /** True if the step runs before the request's own statement. */
  readonly isPreceding?: true;
  /** The settings that get the values for the transaction; for other steps undefined. */
  readonly sets?: readonly string[];
  /** True if the text contains values: it is parsed for this step only. */
  readonly isUnprepared?: true;
};

function makeConstantStep(text: string, { sync }: Pick<BatchStep, "sync">): BatchStep {
  return { shape: new StatementShape(text), values: [], sync, isContext: false };
}

/** Makes a step whose result is discarded. */
function makeStepBeside(text: string): BatchStep {
  return { ...makeConstantStep(text, { sync: false }), isPreceding: true };
}

/**
 * Resets settings that a function changed for the session instead of for its transaction. Costs 2 of about 25 µs;
 * without it such a setting would apply to the next caller's request.
 */
const RESET = makeConstantStep("reset all", { sync: false });
/** The same reset before a statement with settings of its own, in the middle of a transaction. */
const RESET_WITHIN: BatchStep = { ...RESET };
const BEGIN = makeConstantStep("begin", { sync: false });
/** Starts a read-only subtransaction. Unlike SET LOCAL, its end restores whether the transaction may write. */
const BEGIN_READ_ONLY = ["savepoint read_only_steps", "set transaction read only"].map(makeStepBeside);
const END_READ_ONLY = makeStepBeside("release savepoint read_only_steps");
const BEGIN_ISOLATED = {
  "read committed": makeConstantStep("begin isolation level read committed", { sync: false }),
  "repeatable read": makeConstantStep("begin isolation level repeatable read", { sync: false }),
  serializable: makeConstantStep("begin isolation level serializable", { sync: false }),
} as const;
const CHECK_CONSTRAINTS = makeConstantStep("set constraints all immediate", { sync: true });
const SET_TIMEOUT = new StatementShape("select pg_catalog.set_config('statement_timeout', $1, true)");
const TIMEOUT_SETTING = ["statement_timeout"];
const COMMIT = makeConstantStep("commit", { sync: true });
const ROLLBACK = makeConstantStep("rollback", { sync: true });

/** The statements that change the role by SET LOCAL, by the text that each replaces. */
const ROLE_STATEMENTS: ReadonlyMap<string, StatementShape> = new Map([
  [
    BECOME_LOGIN.text,
    new StatementShape(`do $$ begin
      perform pg_catalog.set_config('login.role', pg_catalog.current_setting('role'), true);
      set local role none;
    end $$`),
  ],
  [
    BECOME_CALLER.text,
    new StatementShape(
      "do $$ begin execute pg_catalog.format('set local role %I', pg_catalog.current_setting('login.role')); end $$",
    ),
  ],
]);

export type IsolationLevel = keyof typeof BEGIN_ISOLATED;

export type StatementLimits = {
  readonly readOnly: boolean;
  /** The timeout in milliseconds; the role's own setting overrides it. */
  readonly statementTimeout: number;
  /** The timeout in milliseconds. Applies if the statement has no time limit of its own; the role's own setting overrides it. */
  readonly lockTimeout: number;
  /** Overrides every other statement timeout. */
  readonly timeoutMs: number | undefined;
};

type RequestLimits = StatementLimits & {
  /** Steps to run before the statement in the same transaction. */
  readonly before: readonly BatchStep[];
};

/** Makes the steps of one implicit transaction: settings, statement, Sync. */
export function makeRequestSteps(
  shape: StatementShape,
  statement: Statement,
  context: StatementContext,
  terms: RequestLimits,
): BatchStep[] {
  return [RESET, makeContextStep(context, terms), ...terms.before, makeStatementStep(shape, statement, { sync: true })];
}

/**
 * Makes the same steps with a rollback. Deferred constraints are checked first, as at commit. The rollback has a Sync of its own,
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

/** The ways in which sessions of a server or router run the transactions of requests, and get their settings. */
export type TransactionCapabilities = {
  /**
   * True if requests are sent as BEGIN … COMMIT instead of as the implicit transaction of the statements before a Sync,
   * which some routers distribute over several sessions.
   */
  readonly isExplicit: boolean;
  /** True if a setting that a function changes for its session would apply to later requests. */
  readonly keepsSettings: boolean;
  /**
   * The caller's role and settings are set by a function, or by a SET LOCAL for each, which Citus (`distributed`) passes on to its other nodes. With
   * statements, requests are explicit transactions.
   */
  readonly settingMode: "function" | "statements" | "distributed";
};

/** The steps, the index of the first one whose rows are collected, and the number of steps from it to the last such one. */
export type StepSequence = {
  readonly steps: readonly BatchStep[];
  readonly main: number;
  readonly mainCount: number;
};

/**
 * Adapts the steps to this server or router. COMMIT shares its Sync with the statement, as each Sync costs a
 * write of the server: after an error the connection rolls back. Statements that failed lately have a Sync of their own.
 */
export function adaptSteps(batch: StepSequence, capabilities: TransactionCapabilities): StepSequence {
  const sequence = capabilities.isExplicit ? toExplicitSteps(batch, capabilities) : batch;
  const { settingMode } = capabilities;
  return settingMode === "function" ? sequence : withSettingStatements(sequence, settingMode === "distributed");
}

/**
 * Sets each setting by a statement of its own. A distributed database applies these on its other nodes, where policies read them; what a
 * function sets stays on the node that runs it.
 */
function withSettingStatements({ steps, main, mainCount }: StepSequence, isDistributed: boolean): StepSequence {
  const toStatements = (step: BatchStep) => toSettingStatements(step, isDistributed);
  const before = steps.slice(0, main).flatMap(toStatements);
  const own = steps.slice(main, main + mainCount).flatMap(toStatements);
  const after = steps.slice(main + mainCount).flatMap(toStatements);
  return { steps: [...before, ...own, ...after], main: before.length, mainCount: own.length };
}

function toSettingStatements(step: BatchStep, isDistributed: boolean): BatchStep[] {
  const { sets, values, isContext, isPreceding, shape } = step;
  const ofRole = ROLE_STATEMENTS.get(shape.text);
  if (ofRole) return [{ ...step, shape: ofRole }];
  if (!sets) return [step];
  const settings = sets.map((name, index) => [name, String(values[index])] as const);
  const texts =
    isContext && isDistributed
      ? makeCallerStatements(settings)
      : settings.map(([name, value]) => makeSettingStatement(name, value));
  return texts.map((text) => ({
    shape: new StatementShape(text),
    values: [],
    sync: false,
    isContext,
    ...(isPreceding && { isPreceding }),
    isUnprepared: true,
  }));
}

function toExplicitSteps(batch: StepSequence, { keepsSettings }: TransactionCapabilities): StepSequence {
  const { steps, main, mainCount } = keepsSettings ? batch : withoutResetsWithin(batch);
  const isImplicit = steps[0] === RESET;
  if (!isImplicit && (keepsSettings || steps[1] !== RESET)) return { steps, main, mainCount };
  const [opening, rest] = isImplicit ? [BEGIN, steps.slice(1)] : [steps[0]!, steps.slice(2)];
  const beginning = keepsSettings ? [opening, RESET] : [opening];
  const position = main + beginning.length - (steps.length - rest.length);
  if (!isImplicit) return { steps: [...beginning, ...rest], main: position, mainCount };
  return { steps: [...beginning, ...withCommit(rest)], main: position, mainCount };
}

function withoutResetsWithin({ steps, main, mainCount }: StepSequence): StepSequence {
  const isKept = (step: BatchStep) => step !== RESET_WITHIN;
  return {
    steps: steps.filter(isKept),
    main: steps.slice(0, main).filter(isKept).length,
    mainCount: steps.slice(main, main + mainCount).filter(isKept).length,
  };
}

function withCommit(steps: readonly BatchStep[]): BatchStep[] {
  const mayFail = steps.some(({ shape }) => shape.mayFail);
  return [...steps.slice(0, -1), { ...steps.at(-1)!, sync: mayFail }, COMMIT];
}

/** The end of a transaction: `checked` checks its deferred constraints, as at commit, and rolls it back. */
export type TransactionEnd = "commit" | "checked";

/** Returns the steps of statements in an open transaction, with the end of the transaction if they are its last. */
export function withEnd(steps: readonly BatchStep[], end: TransactionEnd | null): BatchStep[] {
  if (end === "commit") return withCommit(steps);
  if (end === "checked") return [...steps, CHECK_CONSTRAINTS, ROLLBACK];
  return [...steps.slice(0, -1), { ...steps.at(-1)!, sync: true }];
}

/** True if the step runs a statement of the request, and its rows belong to the result. */
export function isOwnStep(step: BatchStep): boolean {
  return !step.isContext && !step.isPreceding && step !== RESET_WITHIN;
}

/** True if an error leaves the transaction open, because COMMIT is skipped. */
export function leavesTransactionOpen(steps: readonly BatchStep[]): boolean {
  return steps.at(-1) === COMMIT && steps.length > 1 && !steps.at(-2)!.sync;
}

/** One of several statements of one transaction. */
export type GroupedStatement = Statement & {
  /** Replaces the role and settings of earlier statements, and the settings that these have changed; the role is the same. */
  readonly context?: StatementContext | undefined;
  /** A statement that runs before this one, with its settings; its rows are discarded. */
  readonly before?: Statement | undefined;
  /** True if the statement is refused when it writes, as in a read-only transaction. */
  readonly readOnly?: boolean;
};

type ShapeOf = (statement: Statement) => StatementShape;

/** Makes the steps of a group. `current` is the context before the first statement; `afterSettings` follows each change of settings. */
export function makeGroupSteps(
  statements: readonly GroupedStatement[],
  current: StatementContext,
  shapeOf: ShapeOf,
  limits: StatementLimits,
  afterSettings: readonly BatchStep[] = [],
): BatchStep[] {
  let last = current;
  return statements.flatMap((statement) => {
    const { context = last, before, readOnly = false } = statement;
    const settings = context === last ? [] : [RESET_WITHIN, makeContextStep(context, limits), ...afterSettings];
    last = context;
    const preceding = before ? [makePrecedingStep(shapeOf(before), before)] : [];
    const own = makeStatementStep(shapeOf(statement), statement, { sync: false });
    return [...settings, ...preceding, ...(readOnly ? [...BEGIN_READ_ONLY, own, END_READ_ONLY] : [own])];
  });
}

/** Sets the timeout of the following statements in the transaction. */
export function makeTimeoutStep(milliseconds: number): BatchStep {
  const values = [String(milliseconds)];
  return { shape: SET_TIMEOUT, values, sets: TIMEOUT_SETTING, sync: false, isContext: false, isPreceding: true };
}

/** Checks deferred constraints within the statement timeout, which does not apply to COMMIT. */
export function constraintsStep(): BatchStep {
  return CHECK_CONSTRAINTS;
}

export function makePrecedingStep(shape: StatementShape, statement: Statement): BatchStep {
  return { ...makeStatementStep(shape, statement, { sync: false }), isPreceding: true };
}

/** Makes the steps of one transaction that runs as the login itself. */
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

/** Makes the same statements for a connection that runs one by one, with each setting in one of its own. */
export function makeOpeningStatements(context: StatementContext, terms: StatementLimits): Statement[] {
  return makeOpeningSteps(context, terms, undefined)
    .flatMap((step) => toSettingStatements(step, true))
    .map(({ shape, values }) => ({ text: shape.text, values }));
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

export function endingStep(how: "commit" | "rollback"): BatchStep {
  return how === "commit" ? COMMIT : ROLLBACK;
}

export function isEndingStep(step: BatchStep): boolean {
  return step === COMMIT || step === ROLLBACK;
}

function makeContextStep({ role, settings }: StatementContext, terms: StatementLimits): BatchStep {
  const { readOnly, statementTimeout, lockTimeout, timeoutMs } = terms;
  // The role "none" would select the login itself; "" names no role, so it is rejected.
  const lockLimit = timeoutMs === undefined ? lockTimeout : 0;
  const values = [role === "none" ? "" : role, String(statementTimeout), String(lockLimit)];
  if (readOnly) values.push("on");
  for (const [, value] of settings) values.push(value);
  if (timeoutMs !== undefined) values.push(String(timeoutMs));
  const { shape, sets } = contextShapeFor(settings, { readOnly, isTimed: timeoutMs !== undefined });
  return { shape, values: checkValues(values), sets, sync: false, isContext: true };
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

type ContextStepOptions = { readonly readOnly: boolean; readonly isTimed: boolean };
type ContextShape = { readonly shape: StatementShape; readonly sets: readonly string[] };
type CachedContextShape = ContextStepOptions & ContextShape & { readonly names: readonly string[] };

/** The known shapes, indexed by the number of settings. */
const contextShapes: CachedContextShape[][] = [];

/** The text contains the names of the settings: names as parameters would make a request 10 % slower. */
function contextShapeFor(
  settings: StatementContext["settings"],
  { readOnly, isTimed }: ContextStepOptions,
): ContextShape {
  contextShapes[settings.length] ??= [];
  const candidates = contextShapes[settings.length]!;
  for (const known of candidates) {
    const isSame = known.readOnly === readOnly && known.isTimed === isTimed;
    if (isSame && known.names.every((name, index) => name === settings[index]![0])) return known;
  }
  const names = settings.map(([name]) => name);
  const sets = ["role", "statement_timeout", "lock_timeout"];
  if (readOnly) sets.push("transaction_read_only");
  sets.push(...names);
  if (isTimed) sets.push("statement_timeout");
  const calls = sets.map((name, index) => `pg_catalog.set_config(${pg.escapeLiteral(name)},$${index + 1},true)`);
  const shape = new StatementShape(`select ${countsOf(calls)}`);
  const made = { readOnly, isTimed, names, shape, sets };
  candidates.push(made);
  return made;
}

/** Postgres limits the arguments of a function to 100. */
const MAX_ARGUMENTS = 100;

/** Wraps the calls as arguments: as columns, Postgres would send back their values, such as the request's headers. Saves 5 of 20 µs. */
function countsOf(calls: readonly string[]): string[] {
  return Array.from(
    { length: Math.ceil(calls.length / MAX_ARGUMENTS) },
    (_, index) => `pg_catalog.num_nulls(${calls.slice(index * MAX_ARGUMENTS, (index + 1) * MAX_ARGUMENTS)})`,
  );
}
