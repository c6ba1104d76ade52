import { type RowsWrite, UnsuccessfulResult } from "#plugins";
import type { Database, QueryInTransaction, QueryTogether, SharedRunOptions } from "#postgres/database";
import { type Statement, type StatementContext, type StatementResult, withTextCells } from "#postgres/statement";

/** The part of Database that operations use. */
export type CallerDatabase = Pick<Database, "run" | "transaction"> & {
  /** Sends several statements in one write and one transaction. */
  runTogether(
    context: StatementContext,
    statements: readonly Statement[],
    options?: SharedRunOptions,
  ): Promise<StatementResult[]>;
  /** Undoes the work if it fails, so that the open transaction goes on. Absent outside of a transaction. */
  attempt?<T>(work: () => Promise<T>): Promise<T>;
};

/** Writes the rows by the planner's statements, and runs the statement that reads them. */
export type WriteRows = (rows: RowsWrite, statement: Statement, options: SharedRunOptions) => Promise<StatementResult>;

/** Throws if the result that was kept last in the transaction says that its mutation was not successful. */
export async function checkSuccess(
  database: Pick<CallerDatabase, "run">,
  context: StatementContext,
  text: string,
): Promise<void> {
  const { rows } = await database.run(context, { text, values: [] });
  if (rows[0]) throw new UnsuccessfulResult(rows[0]);
}

const SAVEPOINT: Statement = { text: "savepoint attempt", values: [] };
const ROLL_BACK_TO_SAVEPOINT: Statement = { text: "rollback to savepoint attempt", values: [] };

/** The statements run in the open transaction, whose caller and limits are fixed. */
export function databaseWithin(query: QueryInTransaction, queryTogether: QueryTogether): CallerDatabase {
  let failure: unknown = null;
  const noteFailure = (error: unknown): never => {
    failure ??= error;
    throw error;
  };
  const run: CallerDatabase["run"] = async (_context, statement, { before, fields = false, signal } = {}) => {
    if (signal?.aborted) throw signal.reason;
    if (!before) return query(statement, { fields }).catch(noteFailure);
    const both = [query(before, { isPreceding: true }), query(statement, { fields })] as const;
    const [, result] = await Promise.all(both).catch(noteFailure);
    return result;
  };
  return {
    run,
    runTogether: async (_context, statements, { signal } = {}) => {
      if (signal?.aborted) throw signal.reason;
      // Otherwise the error of the statement before would be explained as an error of these.
      if (failure !== null) throw new Error("A statement before has failed.", { cause: failure });
      return (await queryTogether(statements).catch(noteFailure)).map(withTextCells);
    },
    transaction: (_context, work) => work(query, queryTogether),
    async attempt(work) {
      await query(SAVEPOINT, { isSavepoint: true });
      try {
        return await work();
      } catch (error) {
        await query(ROLL_BACK_TO_SAVEPOINT, { isSavepoint: true });
        failure = null;
        throw error;
      }
    },
  };
}
