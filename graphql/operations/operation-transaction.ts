import { GraphQLError } from "grafast/graphql";
import {
  type Database,
  isOutcomeUnknown,
  type QueryInTransaction,
  type QueryTogether,
  type ResponseBudget,
} from "#postgres/database";
import type { StatementContext } from "#postgres/statement";
import { NotCompiled } from "../compile/not-compiled.ts";
import { type CallerDatabase, databaseWithin } from "./caller-database.ts";
import { toGraphQLError } from "./errors.ts";
import type { OperationResult } from "./run-compiled.ts";

type OperationTransaction = {
  readonly database: Database;
  readonly context: StatementContext;
  /** Makes the memory budget of each statement. */
  readonly makeBudget: () => ResponseBudget;
};

/** Thrown to roll back an operation if one of its fields has failed. */
class FailedOperation extends Error {
  override name = "FailedOperation";
  readonly result: OperationResult;

  constructor(result: OperationResult) {
    super("a field has failed");
    this.result = result;
  }
}

/** Runs an operation in one transaction, which is rolled back if the result has an error. Throws NotCompiled after the rollback. */
export async function runOperationTransaction(
  { database, context, makeBudget }: OperationTransaction,
  run: (database: CallerDatabase) => Promise<OperationResult>,
): Promise<OperationResult> {
  const work = async (query: QueryInTransaction, queryTogether: QueryTogether): Promise<OperationResult> => {
    const result = await run(databaseWithin(query, queryTogether));
    if (result.errors && result.errors.length > 0) throw new FailedOperation(result);
    return result;
  };
  try {
    return await database.transaction(context, work, { isTimedAsOne: true, makeBudget });
  } catch (error) {
    if (error instanceof NotCompiled) throw error;
    return error instanceof FailedOperation ? undoneResult(error.result) : failedCommit(error);
  }
}

/** Errors of fields after the first one that failed are consequences. */
function undoneResult({ data, errors = [] }: OperationResult): OperationResult {
  // Nothing was executed.
  if (data === undefined) return { errors };
  const failed = errors[0]?.path?.[0];
  const own = errors.filter(({ path }) => path?.[0] === failed);
  const field = failed === undefined ? "a field" : `the field "${failed}"`;
  return { data: null, errors: [...own, rolledBack(`Nothing was changed, because ${field} failed.`)] };
}

function failedCommit(error: unknown): OperationResult {
  const errors = [toGraphQLError(error)];
  if (!isOutcomeUnknown(error)) {
    errors.push(rolledBack("Nothing was changed, because the transaction could not be committed."));
  }
  return { data: null, errors };
}

function rolledBack(message: string): GraphQLError {
  return new GraphQLError(message, { extensions: { code: "TRANSACTION_ROLLED_BACK" } });
}
