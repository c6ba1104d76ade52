import { type ExecutionResult, GraphQLError, isNonNullType } from "grafast/graphql";
import pg from "pg";
import { nestedPathOf } from "#planner";
import {
  ContextError,
  isQueryCanceled,
  isResponseTooLarge,
  PrecedingStatementError,
  type ResponseBudget,
  responseTooLarge,
} from "#postgres/database";
import type { StatementContext } from "#postgres/statement";
import { ApiError } from "#runtime";
import { type AbortLike, runStepwise } from "#runtime/concurrency";
import { normalizeJson } from "#runtime/json";
import type { CompiledStep } from "../compile/compile-operation.ts";
import { NotCompiled } from "../compile/not-compiled.ts";
import type { BoundOperation, BoundStep } from "../compile/operation-plans.ts";
import type { RootField } from "../compile/selection-reader.ts";
import { areSeveralRowsRefused, isRefusedSize } from "../compile/spell-value.ts";
import { type CallerDatabase, checkSuccess, type WriteRows } from "./caller-database.ts";
import type { ResponseExtensions } from "./errors.ts";

export type CompiledRunOptions = {
  readonly database: Pick<CallerDatabase, "run">;
  readonly context: StatementContext;
  readonly signal: AbortLike | undefined;
  readonly budget: ResponseBudget;
  /** The number of bytes that the response may have. */
  readonly maxBytes: number;
  /** Takes the memory for the response; may refuse or delay it. */
  readonly admit: (bytes: number) => Promise<void> | void;
  /** Writes rows before a statement. */
  readonly writeRows: WriteRows;
  /** True if no step runs after one that has failed. */
  readonly stopsAtError: boolean;
  /** Counts a user that a mutation creates; null if callers may create any number. */
  readonly countSignUp: (() => Promise<void>) | null;
  /** Null: the fields of a step may run by themselves. Otherwise, why they may not. */
  readonly runFieldsRefusal: GraphQLError | null;
};

/** `data` is absent when nothing was executed. */
export type OperationResult = {
  readonly data?: ExecutionResult["data"] | string | Buffer;
  readonly errors?: readonly GraphQLError[] | undefined;
  readonly extensions?: ResponseExtensions | undefined;
};

/** Runs the fields of the step by themselves, because of an error that is assigned to fields. */
type RepeatStep = (step: CompiledStep, reason: NotCompiled) => Promise<OperationResult>;

/** Runs the steps of an operation one after the other. */
export async function runCompiled(
  { plan, steps }: BoundOperation,
  options: CompiledRunOptions,
  repeat: RepeatStep,
): Promise<OperationResult> {
  const runOne = async (bound: BoundStep): Promise<OperationResult> => {
    try {
      return await runStep(bound, options);
    } catch (error) {
      if (!(error instanceof NotCompiled)) throw error;
      if (error.reason === "limit") plan.noteExceededLimit();
      return repeat(bound.step, error);
    }
  };
  const [first] = steps;
  if (steps.length === 1) return runOne(first!);
  const results: OperationResult[] = [];
  for (const step of steps) {
    const result = await runOne(step);
    results.push(result);
    if (options.stopsAtError && result.errors) break;
  }
  return mergeResults(results);
}

/** Fields of `data` from several steps. Where one has none `data` is null, and errors of fields after it are not reported. */
function mergeResults(results: readonly OperationResult[]): OperationResult {
  const failed = results.findIndex(({ data }) => data == null);
  if (failed >= 0) return { data: null, errors: results.slice(0, failed + 1).flatMap(({ errors = [] }) => errors) };
  const all = results.flatMap(({ errors = [] }) => errors);
  const errors = all.length > 0 ? { errors: all } : {};
  const texts = results.map(({ data }) => textOf(data!).slice(1, -1));
  return { data: `{${texts.join()}}`, ...errors };
}

export function textOf(data: NonNullable<OperationResult["data"]>): string {
  return typeof data === "string" || Buffer.isBuffer(data) ? String(data) : JSON.stringify(data);
}

/** Throws NotCompiled for an error that is found out field by field. */
async function runStep({ step, ...bound }: BoundStep, options: CompiledRunOptions): Promise<OperationResult> {
  const { signal, runFieldsRefusal, countSignUp } = options;
  try {
    if (step.countsSignUp) await countSignUp?.();
    const data = await readStatement({ step, ...bound }, options);
    return { data: step.holdsJson ? await runStepwise(normalizeJson(String(data)), signal) : data };
  } catch (error) {
    if (mayBeRepeated(error, step)) {
      if (runFieldsRefusal)
        return failedResult(step.rootFields, exceedsLimit(error) ? (error as Error) : runFieldsRefusal);
      const reason = exceedsLimit(error) ? "limit" : "refused";
      throw new NotCompiled(reason, error instanceof Error ? error.message : String(error));
    }
    return failedResult(step.rootFields, error as Error);
  }
}

/** Runs the statements of a step, and returns the text of the last one. */
export async function readStatement(
  { step, statement, before, rows: written }: BoundStep<Omit<CompiledStep, "document">>,
  { database, context, signal, budget, maxBytes, admit, writeRows }: CompiledRunOptions,
): Promise<string | Buffer> {
  const runOptions = { readOnly: step.readOnly, before, signal, budget, largeValues: "buffer" } as const;
  const running = written
    ? writeRows(written, statement, { signal, budget })
    : database.run(context, statement, runOptions);
  const { rows } = await running.catch((error) => {
    if (areSeveralRowsRefused(error)) throw ambiguousRow();
    throw isRefusedSize(error) ? responseTooLarge(maxBytes) : error;
  });
  if (step.failureText) await checkSuccess(database, context, step.failureText);
  const data = rows[0]?.[0];
  // The write is done, whatever its triggers have done instead.
  if (data == null) throw step.write!.noRowError!();
  const admitted = admit(data.length);
  if (admitted) await admitted;
  return data;
}

/** The rows of a view, or of a table and those that inherit from it, may have the same key. */
function ambiguousRow(): ApiError {
  const hint = "Change the row in the table that it belongs to.";
  return new ApiError("conflict", "RESOURCE_CONFLICT", "Several rows have this key; nothing was changed.", { hint });
}

function exceedsLimit(error: unknown): boolean {
  return isQueryCanceled(error) || isResponseTooLarge(error);
}

/** A mutation that may have been committed is not repeated, and neither is a query that would only take as long again. */
function mayBeRepeated(error: unknown, step: CompiledStep): boolean {
  const { readOnly, rootFields } = step;
  // With a statement for each field, only some of several exceed a limit.
  if (exceedsLimit(error)) return readOnly && rootFields.filter(({ constant }) => constant === undefined).length > 1;
  // Postgres does not answer.
  if (error instanceof ApiError) return false;
  // Other errors of a mutation come from its function, from the write of its row, or after the commit.
  if (!readOnly) return error instanceof pg.DatabaseError && !hasWriteFailed(error, step);
  // The client has left.
  return !(error instanceof Error && error.name === "AbortError");
}

/** SQLSTATEs of errors that may be due to how the operation was compiled: a value that is refused, a missing feature, sizes. */
const STATEMENT_ERRORS = /^(?:0A|42(?!501)|54)/;

/** True if a mutation's function, or the write of a row, has failed, which another statement would do too. */
function hasWriteFailed(error: pg.DatabaseError, { write, before }: CompiledStep): boolean {
  if (write === null && before === null) return !STATEMENT_ERRORS.test(error.code ?? "");
  if (write === null) return error instanceof PrecedingStatementError;
  if (write.rows) return nestedPathOf(error) !== null && !STATEMENT_ERRORS.test(error.code ?? "");
  const isOfWrite = before === null || error instanceof PrecedingStatementError;
  return isOfWrite && !(error instanceof ContextError) && !STATEMENT_ERRORS.test(error.code ?? "");
}

/** Reports the error at each field, as if each had a statement of its own. */
function failedResult(fields: readonly RootField[], originalError: Error): OperationResult {
  const failed = fields.filter(({ constant }) => constant === undefined);
  const whole = failed.findIndex(({ type }) => isNonNullType(type));
  const isWhole = whole >= 0;
  const reported = isWhole ? failed.slice(0, whole + 1) : failed;
  const errors = reported.map(
    ({ key, nodes }) => new GraphQLError(originalError.message, { nodes, path: [key], originalError }),
  );
  return {
    data: isWhole ? null : Object.fromEntries(fields.map(({ key, constant = null }) => [key, constant])),
    errors,
  };
}
