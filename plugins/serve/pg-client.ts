import type { PgClient, PgClientQuery, PgClientResult, WithPgClient } from "postgraphile/@dataplan/pg";
import type { Abort } from "../../engine/abort.ts";
import type { Budget } from "../../engine/database/budget.ts";
import type { Database } from "../../engine/database/database.ts";
import type { Context, Result, Statement } from "../../engine/database/statement.ts";
import type { Query } from "../../engine/database/transaction.ts";
import { FunctionCall } from "../function-call.ts";
import { toText } from "./text-values.ts";

export type ClientOptions = {
  /** What only reads may be asked again when its connection is lost, and goes where reads go. */
  readonly readOnly: boolean;
  /** For each statement: what may be held of its rows. */
  readonly budgetOf?: () => Budget;
  /** Told of the rows of each statement; may refuse what they would become, and have it waited for. */
  readonly admit?: (rows: Result["rows"]) => Promise<void> | void;
  readonly signal?: Abort;
};

/**
 * What a plan runs its SQL through. The caller stands fixed, so the settings that a plan hands over are not looked at: they travel
 * with each statement, in the engine's single round trip, and each statement is a transaction of its own.
 */
export function makeWithPgClient(database: CallerDatabase, context: Context, options: ClientOptions): WithPgClient {
  const client = new CallerClient(database, context, options);
  return async (_settings, work) => work(client);
}

/** What of the engine's database a plan needs. */
export type CallerDatabase = Pick<Database, "run" | "runEach" | "transaction">;

class CallerClient implements PgClient {
  readonly #database: CallerDatabase;
  readonly #context: Context;
  readonly #options: ClientOptions;
  #waiting: { readonly statement: Statement; readonly resolve: (result: Promise<Result>) => void }[] = [];

  constructor(database: CallerDatabase, context: Context, options: ClientOptions) {
    this.#database = database;
    this.#context = context;
    this.#options = options;
  }

  async query<Row>(query: PgClientQuery): Promise<PgClientResult<Row>> {
    const mayShare = this.#options.readOnly && query.arrayMode;
    const result = await (mayShare ? this.#readWithOthers(toStatement(query)) : this.#ask(query));
    const admitted = this.#options.admit?.(result.rows);
    if (admitted) await admitted;
    return toClientResult(result);
  }

  #ask(query: PgClientQuery): Promise<Result> {
    const { readOnly, signal, budgetOf } = this.#options;
    const call = query.values?.find((value) => value instanceof FunctionCall);
    const before = call && toStatement(call);
    const options = { readOnly, signal, before, fields: !query.arrayMode, budget: budgetOf?.() };
    return this.#database.run(this.#context, toStatement(query), options);
  }

  /** With what else the plan reads in this turn of the event loop, such as a page and the count of all. */
  #readWithOthers(statement: Statement): Promise<Result> {
    return new Promise((resolve) => {
      if (this.#waiting.push({ statement, resolve }) === 1) process.nextTick(this.#readAll);
    });
  }

  readonly #readAll = (): void => {
    const { signal, budgetOf } = this.#options;
    const waiting = this.#waiting.splice(0);
    const statements = waiting.map(({ statement }) => statement);
    const results = Promise.try(() =>
      this.#database.runEach(this.#context, statements, { signal, budget: budgetOf?.() }),
    );
    for (const [index, { resolve }] of waiting.entries()) resolve(results.then((each) => each[index]!));
  };

  async withTransaction<T>(work: (client: this) => Promise<T>): Promise<T> {
    const { readOnly } = this.#options;
    return this.#database.transaction(
      this.#context,
      (query) => work(new TransactionClient(query) as PgClient as this),
      { readOnly },
    );
  }
}

/** Within a transaction; another one within it is a savepoint. */
class TransactionClient implements PgClient {
  readonly #query: Query;
  readonly #depth: number;

  constructor(query: Query, depth = 0) {
    this.#query = query;
    this.#depth = depth;
  }

  async query<Row>(query: PgClientQuery): Promise<PgClientResult<Row>> {
    return toClientResult(await this.#query(toStatement(query), { fields: !query.arrayMode }));
  }

  async withTransaction<T>(work: (client: this) => Promise<T>): Promise<T> {
    const savepoint = `inner_${this.#depth}`;
    await this.#tell(`savepoint ${savepoint}`);
    try {
      const result = await work(new TransactionClient(this.#query, this.#depth + 1) as PgClient as this);
      await this.#tell(`release savepoint ${savepoint}`);
      return result;
    } catch (error) {
      await this.#tell(`rollback to savepoint ${savepoint}`);
      throw error;
    }
  }

  async #tell(text: string): Promise<void> {
    await this.#query({ text, values: [] });
  }
}

function toStatement({ text, values = [] }: PgClientQuery | FunctionCall): Statement {
  return { text, values: values.map((value) => (value instanceof FunctionCall ? value.result : toText(value))) };
}

/** Rows as arrays, unless their columns were asked for. */
function toClientResult<Row>({ rows, rowCount, fields }: Result): PgClientResult<Row> {
  const named = fields && rows.map((row) => Object.fromEntries(fields.map(({ name }, index) => [name, row[index]])));
  return { rows: (named ?? rows) as readonly Row[], rowCount };
}
