import { GraphQLError, isNonNullType } from "grafast/graphql";
import pg from "pg";
import type { AbortLike } from "../../engine/concurrency/abort.ts";
import type { Database } from "../../engine/database/database.ts";
import { isQueryCanceled, PrecedingStatementError } from "../../engine/database/database-errors.ts";
import type { ResponseBudget } from "../../engine/database/response-budget.ts";
import type { StatementContext } from "../../engine/database/statement.ts";
import { ApiError } from "../../engine/errors.ts";
import { parseJsonExactly } from "../../engine/json/json-values.ts";
import type { RootField } from "../compile/compile-operation.ts";
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

/**
 * Runs the one statement of an operation. Throws NotCompiled for errors of the statement, which Grafast assigns to fields when it runs
 * the operation; but not where that would take as long again.
 */
export async function runCompiled(
  { compiled, statement, before }: BoundOperation,
  options: CompiledRunOptions,
): Promise<CompiledResult> {
  const { database, context, signal, budget, admit, asText } = options;
  const readOnly = before === undefined;
  try {
    const runOptions = { readOnly, before, signal, budget, largeValues: "buffer" } as const;
    const { rows } = await database.run(context, statement, runOptions);
    const data = rows[0]![0]!;
    const admitted = admit(data.length);
    if (admitted) await admitted;
    if (!asText) return { data: parseJsonExactly(String(data)) as Record<string, unknown> };
    return { data: compiled.holdsJson ? JSON.stringify(parseJsonExactly(String(data))) : data };
  } catch (error) {
    if (!isFinal(error, readOnly))
      throw new NotCompiled("refused", error instanceof Error ? error.message : String(error));
    return failedResult(compiled.rootFields, error as Error);
  }
}

/**
 * A mutation's function has failed, the statement took too long, its answer is too large, the client has left, or Postgres does not
 * answer. After a mutation, any other error than Postgres's is final too: the change was committed.
 */
function isFinal(error: unknown, readOnly: boolean): boolean {
  if (error instanceof ApiError || error instanceof PrecedingStatementError || isQueryCanceled(error)) return true;
  if (!readOnly) return !(error instanceof pg.DatabaseError);
  return error instanceof Error && error.name === "AbortError";
}

/** The error is one of each field, as if each had a statement of its own. */
function failedResult(fields: readonly RootField[], originalError: Error): CompiledResult {
  const errors = fields.map(
    ({ key, nodes }) => new GraphQLError(originalError.message, { nodes, path: [key], originalError }),
  );
  const isWhole = fields.some(({ type }) => isNonNullType(type));
  return { data: isWhole ? null : Object.fromEntries(fields.map(({ key }) => [key, null])), errors };
}
