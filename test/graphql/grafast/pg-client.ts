import type { PgClient, PgClientQuery, PgClientResult, WithPgClient } from "@dataplan/pg";
import { toPgText } from "../../../graphql/compile/text-values.ts";
import { type CallerDatabase, checkSuccess, type WriteRows } from "../../../graphql/operations/caller-database.ts";
import type { ResponseBudget } from "../../../postgres/database/response-budget.ts";
import type { Statement, StatementContext, StatementResult } from "../../../postgres/database/statement.ts";
import type { QueryInTransaction } from "../../../postgres/database/transaction.ts";
import type { AbortLike } from "../../../runtime/concurrency/abort.ts";
import { FunctionCall } from "./function-plans.ts";
import { PlannedWrite } from "./planned-write.ts";

type PgClientOptions = {
  /** True if statements only read: they then use the read pools and are retried when a connection is lost. */
  readonly readOnly: boolean;
  /** True if a function's result counts as an error when it says that it was not successful. */
  readonly refusesUnsuccessful?: boolean;
  /** Writes rows before a statement. Absent: no plan does. */
  readonly writeRows?: WriteRows;
  /** The memory budget for the rows of each statement. */
  readonly budgetOf?: () => ResponseBudget;
  readonly signal?: AbortLike;
};

/**
 * The client through which a plan runs its SQL. The caller is fixed, so the settings that the plan passes are ignored: the database room sends
 * the caller's with each statement, in one round trip and one transaction.
 */
export function makeWithPgClient(
  database: CallerDatabase,
  context: StatementContext,
  options: PgClientOptions,
): WithPgClient {
  const client = new CallerClient(database, context, options);
  return async (_settings, work) => work(client);
}

class CallerClient implements PgClient {
  readonly #database: CallerDatabase;
  readonly #context: StatementContext;
  readonly #options: PgClientOptions;

  constructor(database: CallerDatabase, context: StatementContext, options: PgClientOptions) {
    this.#database = database;
    this.#context = context;
    this.#options = options;
  }

  async query<Row>(query: PgClientQuery): Promise<PgClientResult<Row>> {
    return toClientResult(await this.#runQuery(query));
  }

  async #runQuery(query: PgClientQuery): Promise<StatementResult> {
    const { readOnly, signal, budgetOf, writeRows, refusesUnsuccessful = false } = this.#options;
    const planned = query.values?.find((value) => value instanceof PlannedWrite);
    if (planned && writeRows) return writeRows(planned.rows, toStatement(query), { signal, budget: budgetOf?.() });
    const call = query.values?.find((value) => value instanceof FunctionCall);
    const before = call && toStatement(call);
    const options = { readOnly, signal, before, fields: !query.arrayMode, budget: budgetOf?.() };
    const result = await this.#database.run(this.#context, toStatement(query), options);
    if (refusesUnsuccessful && call?.failureText) await checkSuccess(this.#database, this.#context, call.failureText);
    return result;
  }

  async withTransaction<T>(work: (client: this) => Promise<T>): Promise<T> {
    const { readOnly } = this.#options;
    return this.#database.transaction(
      this.#context,
      (query) => work(new TransactionClient(query) as PgClient as this),
      { readOnly },
    );
  }
}

/** A client within a transaction; nested transactions are savepoints. */
class TransactionClient implements PgClient {
  readonly #query: QueryInTransaction;
  readonly #depth: number;

  constructor(query: QueryInTransaction, depth = 0) {
    this.#query = query;
    this.#depth = depth;
  }

  async query<Row>(query: PgClientQuery): Promise<PgClientResult<Row>> {
    return toClientResult(await this.#query(toStatement(query), { fields: !query.arrayMode }));
  }

  async withTransaction<T>(work: (client: this) => Promise<T>): Promise<T> {
    const savepoint = `inner_${this.#depth}`;
    await this.#execute(`savepoint ${savepoint}`);
    try {
      const result = await work(new TransactionClient(this.#query, this.#depth + 1) as PgClient as this);
      await this.#execute(`release savepoint ${savepoint}`);
      return result;
    } catch (error) {
      await this.#execute(`rollback to savepoint ${savepoint}`);
      throw error;
    }
  }

  async #execute(text: string): Promise<void> {
    await this.#query({ text, values: [] });
  }
}

/** A quoted name or text, or a call of one of the functions of Postgres that core writes without their schema. */
const CORE_FUNCTION =
  /"[^"]*"|'[^']*'|(?<![\w.])(?:json_build_array|json_array_elements|row_number|to_json|array_agg|unnest|to_char|count|(?:low|upp)er(?:_inc)?)(?=\()/g;

/** Otherwise Postgres would call a user's function of that name if it fits better. */
function qualifyFunctions(text: string): string {
  return text.replace(CORE_FUNCTION, (found) => (/^["']/.test(found) ? found : `pg_catalog.${found}`));
}

function toStatement({ text, values = [] }: PgClientQuery | FunctionCall): Statement {
  const isDoneBefore = (value: unknown) => value instanceof FunctionCall || value instanceof PlannedWrite;
  return {
    text: qualifyFunctions(text),
    values: values.map((value) => (isDoneBefore(value) ? value.result : toPgText(value))),
  };
}

/** Rows are arrays, unless the query wants objects. */
function toClientResult<Row>({ rows, rowCount, fields }: StatementResult): PgClientResult<Row> {
  const named = fields && rows.map((row) => Object.fromEntries(fields.map(({ name }, index) => [name, row[index]])));
  return { rows: (named ?? rows) as readonly Row[], rowCount };
}
