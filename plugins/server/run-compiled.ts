import { GraphQLError, isNonNullType } from "grafast/graphql";
import pg from "pg";
import type { AbortLike } from "../../engine/concurrency/abort.ts";
import type { Database } from "../../engine/database/database.ts";
import {
  ContextError,
  isQueryCanceled,
  isResponseTooLarge,
  PrecedingStatementError,
} from "../../engine/database/database-errors.ts";
import type { ResponseBudget } from "../../engine/database/response-budget.ts";
import type { StatementContext } from "../../engine/database/statement.ts";
import { ApiError } from "../../engine/errors.ts";
import { parseJsonExactly } from "../../engine/json/json-values.ts";
import type { CompiledOperation, RootField } from "../compile/compile-operation.ts";
import { NotCompiled } from "../compile/not-compiled.ts";
import type { BoundOperation } from "../compile/operation-plans.ts";

export type CompiledRunOptions = {
  readonly database: Database;
  readonly context: StatementContext;
  readonly signal: AbortLike | undefined;
  readonly budget: ResponseBudget;
  /** Takes the memory for the response; may refuse or delay it. */
  readonly admit: (bytes: number) => Promise<void> | void;
  readonly asText: boolean;
};

type CompiledResult = {
  readonly data: string | Buffer | Record<string, unknown> | null;
  readonly errors?: readonly GraphQLError[];
};

/** Runs the one statement of an operation. Throws NotCompiled for an error that Grafast assigns to fields when it repeats the operation. */
export async function runCompiled(
  { compiled, statement, before }: BoundOperation,
  options: CompiledRunOptions,
): Promise<CompiledResult> {
  const { database, context, signal, budget, admit, asText } = options;
  const readOnly = before === undefined && compiled.write === null;
  try {
    const runOptions = { readOnly, before, signal, budget, largeValues: "buffer" } as const;
    const { rows } = await database.run(context, statement, runOptions);
    const data = rows[0]?.[0];
    // The write is committed, whatever its triggers have done instead.
    if (data == null) return failedResult(compiled.rootFields, compiled.write!.noRowError!());
    const admitted = admit(data.length);
    if (admitted) await admitted;
    if (!asText) return { data: parseJsonExactly(String(data)) as Record<string, unknown> };
    return { data: compiled.holdsJson ? JSON.stringify(parseJsonExactly(String(data))) : data };
  } catch (error) {
    if (mayBeRepeated(error, compiled)) {
      throw new NotCompiled("refused", error instanceof Error ? error.message : String(error));
    }
    return failedResult(compiled.rootFields, error as Error);
  }
}

/** A mutation that may have been committed is not repeated, and neither is a query that would only take as long again. */
function mayBeRepeated(error: unknown, compiled: CompiledOperation): boolean {
  const { before, write, rootFields } = compiled;
  const readOnly = before === null && write === null;
  // Grafast reads each field with a statement of its own, so only some of several exceed a limit.
  if (isQueryCanceled(error) || isResponseTooLarge(error)) return readOnly && rootFields.length > 1;
  // Postgres does not answer.
  if (error instanceof ApiError) return false;
  // Other errors of a mutation come from its function, from the write of its row, or after the commit.
  if (!readOnly) return error instanceof pg.DatabaseError && !hasWriteFailed(error, compiled);
  // The client has left.
  return !(error instanceof Error && error.name === "AbortError");
}

/** SQLSTATEs of errors that may be due to how the operation was compiled: a value that is refused, a missing feature, sizes. */
const STATEMENT_ERRORS = /^(?:0A|42(?!501)|54)/;

/** Whether a mutation's function, or the write of a row, has failed as it would by Grafast. */
function hasWriteFailed(error: pg.DatabaseError, { write, before }: CompiledOperation): boolean {
  if (write === null) return error instanceof PrecedingStatementError;
  const isOfWrite = before === null || error instanceof PrecedingStatementError;
  return isOfWrite && !(error instanceof ContextError) && !STATEMENT_ERRORS.test(error.code ?? "");
}

/** The error is one of each field, as if each had a statement of its own. */
function failedResult(fields: readonly RootField[], originalError: Error): CompiledResult {
  const errors = fields.map(
    ({ key, nodes }) => new GraphQLError(originalError.message, { nodes, path: [key], originalError }),
  );
  const isWhole = fields.some(({ type }) => isNonNullType(type));
  return { data: isWhole ? null : Object.fromEntries(fields.map(({ key }) => [key, null])), errors };
}
